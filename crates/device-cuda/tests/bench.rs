//! All that is measured on a GPU runs on the emulator, and chains of instructions compute what they should.

use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Arg, Backend, Emulator, Error, Launch, Order};
use veil_device_cuda::bench::{self, Effort};
use veil_device_cuda::kernels::{Kernel, RATE_LDS, RATE_LOP3, RATE_MMA, RATE_PRMT};

#[test]
fn everything_is_measured_on_the_emulator() -> Result<(), bench::Error> {
    let mut device = Cuda::on(Box::new(Emulator::new(Order::Forward)));
    let limits = bench::limits(&mut device, Effort::EMULATOR)?;
    let mut figures = Vec::new();
    bench::figures(device, &limits, Effort::EMULATOR, |figure| {
        figures.push(figure);
    })?;
    assert_eq!(figures.len(), 10);
    for figure in &figures {
        let bounds = [figure.kernel_bound.0, figure.pinned_bound.0];
        for number in figure.rates.iter().chain(&bounds) {
            assert!(number.is_finite() && *number > 0.0, "{figure:?}");
        }
        assert!(figure.pinned_bound.0 <= figure.kernel_bound.0);
    }
    for (what, _, rate) in limits.rows() {
        assert!(rate.is_finite() && rate > 0.0, "{what}: {rate}");
    }
    Ok(())
}

/// What a thread comes to after a round: sixteen steps of eight chains, whose words are changed one after the other.
fn chains(mut x: [u32; 8], step: impl Fn(&[u32; 8], usize) -> u32) -> u32 {
    for _ in 0..16 {
        for k in 0..8 {
            x[k] = step(&x, k);
        }
    }
    x.iter().fold(0, |sum, x| sum.wrapping_add(*x))
}

#[test]
fn chains_of_instructions_are_what_they_are_called() -> Result<(), Error> {
    let run = |kernel: &'static Kernel, by: u32| -> Result<Vec<u32>, Error> {
        let mut on = Emulator::new(Order::Reverse);
        let out = on.allocate(4 * 128)?;
        let args = [Arg::all(&out), Arg::U32(1), Arg::U32(by)];
        on.launch(kernel, Launch { grid: 2, block: 64 }, &args)?;
        let mut bytes = [0; 4 * 128];
        on.read(&out, 0, &mut bytes)?;
        let words = bytes.chunks_exact(4);
        Ok(words
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect())
    };
    let start =
        |t: u32| std::array::from_fn(|k| t.wrapping_mul(0x0103_0507).wrapping_add(k as u32));
    let [by, table_by] = [0x6142, 5];
    let perm = |a: u32, b: u32| {
        let all = [a.to_le_bytes(), b.to_le_bytes()].concat();
        u32::from_le_bytes([2, 4, 1, 6].map(|at: usize| all[at]))
    };
    let majority = |a: u32, b: u32, c: u32| (a & b) | (a & c) | (b & c);
    let next = |at: u32| 4 * ((at / 128 * table_by + 1) % 64 * 32 + at / 4 % 32);
    for (k, got) in run(&RATE_PRMT, by)?.into_iter().enumerate() {
        let x = start(k as u32 % 64);
        assert_eq!(got, chains(x, |x, k| perm(x[k], x[(k + 1) % 8])));
    }
    for (k, got) in run(&RATE_LOP3, by)?.into_iter().enumerate() {
        let x = start(k as u32 % 64);
        assert_eq!(got, chains(x, |x, k| majority(x[k], x[(k + 1) % 8], by)));
    }
    // Bytes of 2 and 3 by turns: each product adds 16 times 4 and 16 times 9, and sixteen of them are in each sum.
    for (t, got) in run(&RATE_MMA, 0x0302_0302)?.into_iter().enumerate() {
        let first = (0..8).flat_map(|k| (0..4).map(move |e| k + e));
        let first = first.map(|of: u32| (t as u32 % 64).wrapping_mul(0x0103_0507) + of);
        let sums = first.map(|first| first.wrapping_add(16 * (16 * 4 + 16 * 9)));
        assert_eq!(got, sums.fold(0, u32::wrapping_add), "{t}");
    }
    for (t, got) in run(&RATE_LDS, table_by)?.into_iter().enumerate() {
        let t = t as u32 % 64;
        let x = std::array::from_fn(|k| 4 * ((t / 32 + k as u32) % 64 * 32 + t % 32));
        assert_eq!(got, chains(x, |x, k| next(x[k])));
    }
    Ok(())
}
