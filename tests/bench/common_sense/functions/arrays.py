"""numpy with shapes and dtypes that the text fixes."""

import numpy as np


def zeros_plus_one():
    return np.zeros((10000, 10000)) + 1


def ones_float32():
    return np.ones((4000, 4000), dtype=np.float32)


def random_matrix_product():
    a = np.random.rand(1000, 1000)
    b = np.random.rand(1000, 1000)
    return a @ b


def large_product():
    a = np.ones((2000, 2000))
    return a.dot(a)


def sorted_uniform():
    return np.sort(np.random.rand(2_000_000))


def arange_sum():
    return np.arange(10_000_000).sum()


def python_sum_of_array():
    return sum(np.arange(1_000_000))


def mean_of_normal():
    return np.random.normal(size=5_000_000).mean()


def linear_solve():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((800, 800))
    b = rng.standard_normal(800)
    return np.linalg.solve(a, b)


def singular_values():
    return np.linalg.svd(np.random.rand(300, 300), compute_uv=False)


def invert():
    return np.linalg.inv(np.eye(500) * 2 + 0.1)


def exponentials():
    x = np.linspace(0, 10, 3_000_000)
    return np.exp(-x) * np.sin(x)


def small_array():
    v = np.array([1.0, 2.0, 3.0])
    return v / np.linalg.norm(v)


def outer_difference():
    x = np.arange(3000, dtype=np.float64)
    return np.abs(x[:, None] - x[None, :])


def boolean_mask():
    values = np.arange(8_000_000)
    return values[values % 3 == 0]


def cumulative():
    return np.cumsum(np.ones(6_000_000))


def int8_image():
    image = np.zeros((4000, 6000, 3), dtype=np.uint8)
    return image[:, :, ::-1].copy()


def loop_over_array():
    a = np.zeros(200_000)
    for i in range(len(a)):
        a[i] = i * 0.5
    return a


def stacked():
    rows = [np.zeros(1000) for _ in range(2000)]
    return np.vstack(rows)


def append_in_loop():
    a = np.array([])
    for i in range(3000):
        a = np.append(a, i)
    return a


def histogram():
    counts, edges = np.histogram(np.random.randn(1_000_000), bins=50)
    return counts


def fft_of_noise():
    return np.abs(np.fft.rfft(np.random.rand(2**20)))


def to_nested_lists():
    return np.zeros((1000, 1000)).tolist()


def unique_values():
    return np.unique(np.random.randint(0, 1000, size=2_000_000))


def convolve_signal():
    signal = np.random.rand(100_000)
    kernel = np.ones(101) / 101
    return np.convolve(signal, kernel, mode="same")
