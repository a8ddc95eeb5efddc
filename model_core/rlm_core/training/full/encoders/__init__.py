"""Text encoders of the full model: pretrained (T5Gemma, T5Gemma 2) or from scratch, behind one interface."""
