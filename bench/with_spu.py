#!/usr/bin/env python3
"""What SecretFlow SPU takes for products of fixed-point numbers, of matrices, and for a logistic regression.

    python3.11 -m venv venv && venv/bin/pip install spu==0.9.5
    venv/bin/python bench/with_spu.py [--only fixmul] [--rows 100000] [--repeat 3]

Three processes on loopback run ABY3 of three semi-honest parties over Z_2^64, without TLS. A line is one workload: CPU-seconds,
user and system, of all three processes together from the first message to shares of the results, the median of the runs by CPU
time. Neither compiling nor sharing the inputs is in it, nor opening the results, which are compared with NumPy's.
"""

import argparse
import multiprocessing
import socket
import statistics
import time

PARTIES = 3
PLACES = 16
NUMBERS = 8


def fixmul(rows):
    """16 products of 8 numbers in every row, as in `veil-lab bench fixmul`, and their sum over all rows."""
    import jax.numpy as jnp
    import numpy as np

    def function(x):
        return sum(jnp.sum(x * jnp.roll(x, -further, axis=1)) for further in (1, 2))

    random = np.random.default_rng(1)
    x = random.integers(-(1 << 16), 1 << 16, size=(rows, NUMBERS)) / (1 << 12)
    wanted = sum(np.sum(x * np.roll(x, -further, axis=1)) for further in (1, 2))
    products = 2 * x.size
    return function, [x.astype(np.float32)], wanted, products * 2.0**-PLACES, products


def matmul(size):
    """A product of two square matrices, truncated."""
    import jax.numpy as jnp
    import numpy as np

    random = np.random.default_rng(2)
    left, right = (random.integers(-64, 64, size=(size, size)) / 64 for _ in range(2))
    inputs = [left.astype(np.float32), right.astype(np.float32)]
    return jnp.matmul, inputs, left @ right, 1e-2, size**3


def logreg(rows, features, steps):
    """Gradient steps on all rows at once, from slopes of 0."""
    import numpy as np

    def with_library(lib, sigmoid):
        def function(x, y):
            slopes = lib.zeros(features)
            for _ in range(steps):
                error = sigmoid(lib.matmul(x, slopes)) - y
                slopes = slopes - lib.matmul(x.T, error) * (0.5 / rows)
            return slopes

        return function

    import jax
    import jax.numpy as jnp

    random = np.random.default_rng(3)
    x = random.normal(size=(rows, features)).clip(-4, 4)
    chance = 1 / (1 + np.exp(-(x @ random.uniform(-0.5, 0.5, features))))
    y = (random.uniform(size=rows) < chance).astype(float)
    wanted = with_library(np, lambda z: 1 / (1 + np.exp(-z)))(x, y)
    function = with_library(jnp, jax.nn.sigmoid)
    return function, [x.astype(np.float32), y.astype(np.float32)], wanted, 2e-2, rows * steps


def configuration(msb_error):
    import spu

    config = spu.RuntimeConfig(
        protocol=spu.ProtocolKind.ABY3,
        field=spu.FieldType.FM64,
        fxp_fraction_bits=PLACES,
    )
    config.trunc_allow_msb_error = msb_error
    return config


def party(rank, ports, msb_error, pipe):
    """Runs what it is sent, on shares that it is sent, and answers with seconds and shares."""
    import spu

    desc = spu.link.Desc()
    desc.recv_timeout_ms = 600_000
    for of, port in enumerate(ports):
        desc.add_party(f"party {of}", f"127.0.0.1:{port}")
    link = spu.link.create_brpc(desc, rank)
    runtime = spu.Runtime(link, configuration(msb_error))
    while (work := pipe.recv()) is not None:
        executable = spu.Executable()
        executable.ParseFromString(work[0])
        for name, share in zip(executable.input_names, work[1]):
            runtime.set_var(name, share)
        link.barrier()
        cpu, wall = time.process_time(), time.perf_counter()
        runtime.run(executable)
        took = time.process_time() - cpu, time.perf_counter() - wall
        pipe.send((took, [runtime.get_var(name) for name in executable.output_names]))
        for name in [*executable.input_names, *executable.output_names]:
            runtime.del_var(name)
    link.stop_link()


def free_ports():
    sockets = [socket.socket() for _ in range(PARTIES)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def measure(name, workload, pipes, arguments):
    import jax
    import numpy as np
    import spu
    from spu.utils import frontend

    function, inputs, wanted, tolerance, operations = workload
    names = [f"in{at}" for at in range(len(inputs))]
    secret = [spu.Visibility.VIS_SECRET] * len(inputs)
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        jax.jit(function),
        inputs,
        {},
        names,
        secret,
        lambda out: [f"out{at}" for at in range(len(out))],
    )
    io = spu.Io(PARTIES, configuration(arguments.msb_error))
    runs = []
    for _ in range(arguments.repeat):
        shares = [io.make_shares(each, spu.Visibility.VIS_SECRET) for each in inputs]
        for rank, pipe in enumerate(pipes):
            pipe.send((executable.SerializeToString(), [share[rank] for share in shares]))
        answers = [pipe.recv() for pipe in pipes]
        opened = io.reconstruct([outputs[0] for _, outputs in answers])
        error = float(np.max(np.abs(opened - wanted)))
        if not error <= tolerance:
            raise SystemExit(f"{name}: what was opened is {error} from what it means")
        seconds = [took for took, _ in answers]
        runs.append((sum(cpu for cpu, _ in seconds), max(wall for _, wall in seconds), error))
    cpu = statistics.median_low(run[0] for run in runs)
    wall, error = next(run[1:] for run in runs if run[0] == cpu)
    print(
        f"{name}: {cpu:.3f} CPU-s of all, {wall:.3f} s of the clock, {operations / cpu:.4g} operations"
        f" per CPU-s, error up to {error:.2g}",
        flush=True,
    )


def main():
    of = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    of.add_argument("--only", action="append", choices=["fixmul", "matmul", "logreg"])
    of.add_argument("--rows", type=int, default=100_000, help="rows of fixmul")
    of.add_argument("--size", type=int, default=1024, help="rows and columns of matmul")
    of.add_argument("--repeat", type=int, default=3)
    of.add_argument(
        "--msb-error",
        action="store_true",
        help="truncate by two shares, with a chance of a large error",
    )
    arguments = of.parse_args()
    workloads = {
        "fixmul": lambda: fixmul(arguments.rows),
        "matmul": lambda: matmul(arguments.size),
        "logreg": lambda: logreg(10_000, 30, 8),
    }
    context = multiprocessing.get_context("spawn")
    ports = free_ports()
    pipes, processes = [], []
    for rank in range(PARTIES):
        ours, theirs = context.Pipe()
        process = context.Process(
            target=party, args=(rank, ports, arguments.msb_error, theirs), daemon=True
        )
        process.start()
        pipes.append(ours)
        processes.append(process)
    import spu

    print(f"SPU {spu.__version__}, ABY3, Z_2^64, {PLACES} binary places")
    for name, workload in workloads.items():
        if arguments.only is None or name in arguments.only:
            measure(name, workload(), pipes, arguments)
    for pipe in pipes:
        pipe.send(None)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
