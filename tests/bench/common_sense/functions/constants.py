"""Costs that module constants, class constants, defaults and literal containers fix."""

import numpy as np

ITERATIONS = 750_000
WIDTH, HEIGHT = 640, 480
BATCH = 64
EPOCHS = 10
PER_EPOCH = ITERATIONS // (BATCH * EPOCHS)
KB = 1024
MB = KB * KB
NAMES = ["ada", "grace", "edsger", "donald", "barbara", "alan", "john", "tony"]
SETTINGS = {"rounds": 50_000, "verbose": False}


def iterate():
    value = 1.0
    for _ in range(ITERATIONS):
        value = value * 0.999 + 0.5
    return value


def train():
    loss = 10.0
    for epoch in range(EPOCHS):
        for batch in range(PER_EPOCH):
            loss -= loss / (epoch + batch + 10)
    return loss


def render():
    pixels = []
    for y in range(HEIGHT):
        for x in range(WIDTH):
            pixels.append((x ^ y) & 0xFF)
    return pixels


def greet_all():
    return [f"Hello, {name.title()}!" for name in NAMES]


def all_pairs_of_names():
    return [(a, b) for a in NAMES for b in NAMES if a != b]


def rounds_from_settings():
    total = 0
    for i in range(SETTINGS["rounds"]):
        total += i & 3
    return total


def buffer_of_eight_megabytes():
    return bytearray(8 * MB)


def frame():
    return np.zeros((HEIGHT, WIDTH, 3), dtype="float32")


def default_depth(depth=14):
    def build(level):
        if level == 0:
            return None
        return (build(level - 1), build(level - 1))

    return build(depth)


def local_constants():
    rows = 200
    columns = rows * 2
    cells = rows * columns
    return sum(1 for cell in range(cells) if cell % columns > rows)


class Simulation:
    STEPS = 100_000
    dt = 0.01

    def __init__(self, velocity=1.0):
        self.velocity = velocity
        self.position = 0.0

    def run(self):
        for _ in range(self.STEPS):
            self.position += self.velocity * self.dt
            self.velocity *= 0.9999
        return self.position

    def step(self):
        self.position += self.velocity * self.dt

    def run_by_steps(self):
        for _ in range(Simulation.STEPS // 2):
            self.step()


class Grid:
    size = 150

    def __init__(self):
        self.cells = [[0] * self.size for _ in range(self.size)]

    def checksum(self):
        total = 0
        for row in range(Grid.size):
            for column in range(Grid.size):
                total += self.cells[row][column] + row
        return total


class Mandelbrot:
    """Escape times on a fixed grid."""

    def __init__(self, width=80, height=60, limit=50):
        self.width = width
        self.height = height
        self.limit = limit

    def escape(self, c):
        z = 0
        for n in range(self.limit):
            if abs(z) > 2:
                return n
            z = z * z + c
        return self.limit

    @classmethod
    def picture(cls):
        fractal = cls(120, 80, limit=40)
        return [
            [fractal.escape(complex(x / 40 - 2, y / 40 - 1)) for x in range(fractal.width)]
            for y in range(fractal.height)
        ]


class Matrix:
    def __init__(self, rows):
        self.rows = rows

    @staticmethod
    def identity():
        return Matrix([[1 if i == j else 0 for j in range(300)] for i in range(300)])
