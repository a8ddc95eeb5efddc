"""The ONNX operators that the text of a graph names, and the symbols that a tokenizer should hold as single tokens.

An operator is written behind a middle dot (``·Relu``), which no source code does, so the symbols tear no other words.
"""

from __future__ import annotations

ARROW = "\u00b7"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ELEMENTWISE = _words(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh Dropout Elu Erf Exp Floor
    Gelu HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LeakyRelu Log LogSoftmax Mish Neg Not PRelu Reciprocal
    Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu
    CumSum FastGelu QuickGelu BiasGelu QuantizeLinear DequantizeLinear
    """
)
BROADCAST = _words(
    """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min
    Mod Mul Or Pow Sub Sum Where Xor
    """
)
NORMALIZATION = _words(
    """
    BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization
    MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization SkipLayerNormalization
    SkipSimplifiedLayerNormalization
    """
)
POOLS = _words("AveragePool LpPool MaxPool")
GLOBAL_POOLS = _words("GlobalAveragePool GlobalLpPool GlobalMaxPool")
REDUCTIONS = _words(
    """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare
    """
)
PRODUCTS = _words(
    """
    Attention Conv ConvInteger ConvTranspose DeformConv Einsum FusedConv FusedMatMul GRU Gemm GroupQueryAttention
    LSTM MatMul MatMulInteger MatMulNBits MultiHeadAttention QAttention QLinearConv QLinearMatMul RNN
    """
)
MOVES = _words(
    """
    ArgMax ArgMin CenterCropPad Col2Im Compress Concat ConstantOfShape DepthToSpace Expand EyeLike Flatten Gather
    GatherElements GatherND GridSample AffineGrid MaxRoiPool MaxUnpool Multinomial NonMaxSuppression NonZero OneHot
    Pad RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range Reshape Resize ReverseSequence RoiAlign
    RotaryEmbedding Scatter ScatterElements ScatterND Shape Size Slice SpaceToDepth Split Squeeze STFT DFT Tile TopK
    Transpose Unique Unsqueeze Upsample DynamicQuantizeLinear If Loop Scan QLinearAdd QLinearMul
    QLinearGlobalAveragePool
    """
)

#: Operators whose order of operands does not matter: the text sorts them.
COMMUTATIVE = frozenset(_words("Add And BitwiseAnd BitwiseOr BitwiseXor Equal Max Mean Min Mul Or Sum Xor"))

#: Operators with a symbol of their own; any other name is still written and read.
OPERATORS: tuple[str, ...] = tuple(
    sorted({*ELEMENTWISE, *BROADCAST, *NORMALIZATION, *POOLS, *GLOBAL_POOLS, *REDUCTIONS, *PRODUCTS, *MOVES})
)

#: What the tokenizer should hold as single tokens.
SYMBOLS: tuple[str, ...] = (
    ARROW,
    *(ARROW + name for name in OPERATORS),
    *(f"{ARROW}Conv{size}x{size}" for size in (1, 3, 5, 7)),
    *(f"{ARROW}{kind}{size}x{size}" for kind in ("AveragePool", "MaxPool") for size in (2, 3)),
    *(ARROW + letter for letter in "ABCDEFGH"),
)
