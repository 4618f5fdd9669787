//! Kernels on the emulator against other people's code, in three orders of threads; and faults that the emulator finds.

use crate::common::{bytes, given};
use veil_device_cuda::backend::{
    Arg, Backend, Buffer, Driver, Emulator, Error, Launch, Order, Reordered,
};
use veil_device_cuda::kernels::{
    AES_SCHEDULE, Kernel, PROBE_DIVERGING, PROBE_GROWING, PROBE_MATRIX, PROBE_NEIGHBOURS,
    PROBE_SUM, PROBE_SUM_APART, SCHEDULE_BYTES,
};

const ORDERS: [Order; 4] = [
    Order::Forward,
    Order::Reverse,
    Order::Random(1),
    Order::Random(2),
];

fn words(on: &mut Emulator, buffer: &Buffer) -> Vec<u32> {
    let words = bytes(on, buffer);
    let words = words.chunks_exact(4);
    words
        .map(|word| u32::from_le_bytes(word.try_into().expect("it fits")))
        .collect()
}

fn key(seed: u8) -> [u8; 16] {
    std::array::from_fn(|k| (k as u8).wrapping_mul(37).wrapping_add(seed))
}

fn schedules(on: &mut Emulator, keys: &[[u8; 16]]) -> Buffer {
    let from = given(on, &keys.concat());
    let to = on
        .allocate(SCHEDULE_BYTES * keys.len() as u64)
        .expect("it fits");
    let args = [Arg::all(&from), Arg::all(&to), Arg::U32(keys.len() as u32)];
    let launch = Launch { grid: 2, block: 32 };
    on.launch(&AES_SCHEDULE, launch, &args).expect("it fits");
    to
}

/// The last round key of the standard's example (FIPS 197, appendix A.1), and of many keys those that each alone has.
#[test]
fn round_keys_are_those_of_the_standard() {
    let standard = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
    let last = 0xd014_f9a8_c9ee_2589_e13f_0cc8_b663_0ca6_u128.to_be_bytes();
    for order in ORDERS {
        let on = &mut Emulator::new(order);
        let one = schedules(on, &[standard]);
        assert_eq!(bytes(on, &one)[160..], last, "{order:?}");
        let keys: Vec<_> = (0..75).map(key).collect();
        let all = schedules(on, &keys);
        let all = words(on, &all);
        for (k, key) in keys.iter().enumerate() {
            let own = schedules(on, &[*key]);
            let own = words(on, &own);
            assert!(all[44 * k..][..44] == own[..], "{order:?}: {k}");
        }
    }
}

/// Shuffles, ballots, atomics, and barriers of all kinds.
#[test]
fn threads_speak_to_each_other() {
    for order in ORDERS {
        let on = &mut Emulator::new(order);
        let (launch, count) = (Launch { grid: 5, block: 96 }, 450u32);
        let of = |k: u32| k.wrapping_mul(0x9e37_79b9) >> 3;
        let all: Vec<u8> = (0..count).flat_map(|k| of(k).to_le_bytes()).collect();
        let (all, sums, out) = (
            given(on, &all),
            on.allocate(20).unwrap(),
            on.allocate(8).unwrap(),
        );
        let args = [
            Arg::all(&all),
            Arg::all(&sums),
            Arg::all(&out),
            Arg::U32(count),
        ];
        on.launch(&PROBE_SUM, launch, &args).unwrap();
        let want = (0..count).fold(0u32, |sum, k| sum.wrapping_add(of(k)));
        let odd = (0..count).filter(|k| of(*k) & 1 == 1).count() as u32;
        assert_eq!(words(on, &out), [want, odd], "{order:?}");
        let apart = on.launch(&PROBE_SUM_APART, launch, &args);
        assert!(
            matches!(&apart, Err(Error::Kernel { why, .. }) if why.contains("cooperative")),
            "{apart:?}"
        );
    }
}

#[test]
fn a_missing_barrier_is_found_in_each_order() {
    for order in ORDERS {
        let on = &mut Emulator::new(order);
        let want: Vec<u32> = (0..64).map(|k| (k + 1) % 64 + (k + 63) % 64).collect();
        for barrier in [1, 0] {
            let out = on.allocate(256).unwrap();
            let args = [Arg::all(&out), Arg::U32(barrier)];
            on.launch(&PROBE_NEIGHBOURS, Launch { grid: 1, block: 64 }, &args)
                .unwrap();
            assert_eq!(words(on, &out) == want, barrier == 1, "{order:?}");
        }
    }
}

/// The product of fragments against a loop over rows, columns and terms: of random bytes, of the largest, and sums that wrap. Copies that no thread waits for are
/// not there.
#[test]
fn products_of_fragments_are_those_of_matrices() {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as u32
    };
    for (order, largest) in ORDERS
        .iter()
        .flat_map(|order| [(*order, false), (*order, true)])
    {
        let on = &mut Emulator::new(order);
        let mut byte = |_| if largest { 0xff } else { next() as u8 };
        let (a, b): (Vec<u8>, Vec<u8>) = (
            (0..16 * 32).map(&mut byte).collect(),
            (0..8 * 32).map(&mut byte).collect(),
        );
        let c: Vec<u32> = (0..6 * 128)
            .map(|k| if largest { u32::MAX - k } else { next() })
            .collect();
        let told: Vec<u8> = c.iter().flat_map(|word| word.to_le_bytes()).collect();
        let [of_a, of_b] = [&a, &b].map(|bytes| given(on, bytes));
        for waits in [1, 0] {
            let of_c = given(on, &told);
            let args = [
                Arg::all(&of_a),
                Arg::all(&of_b),
                Arg::all(&of_c),
                Arg::U32(waits),
            ];
            on.launch(&PROBE_MATRIX, Launch { grid: 2, block: 96 }, &args)
                .unwrap();
            let got = words(on, &of_c);
            let product = |row: usize, column: usize| {
                let terms =
                    (0..32).map(|k| u32::from(a[32 * row + k]) * u32::from(b[32 * column + k]));
                terms.sum::<u32>()
            };
            let want: Vec<u32> = (0..c.len())
                .map(|at| c[at].wrapping_add(2 * product(at % 128 / 8, at % 8)))
                .collect();
            assert_eq!(got == want, waits == 1, "{order:?} {largest}");
        }
    }
}

#[test]
fn threads_that_do_not_meet_and_memory_that_grows_are_errors() {
    for order in ORDERS {
        let on = &mut Emulator::new(order);
        let launch = Launch { grid: 1, block: 64 };
        for how in 0..3 {
            let ended = on.launch(&PROBE_DIVERGING, launch, &[Arg::U32(how)]);
            assert!(
                matches!(&ended, Err(Error::Kernel { why, .. }) if why.contains("deadlock")),
                "{how}: {ended:?}"
            );
        }
        on.launch(&PROBE_DIVERGING, launch, &[Arg::U32(3)]).unwrap();
    }
    let on = &mut Emulator::new(Order::Forward);
    let grown = on.launch(&PROBE_GROWING, Launch { grid: 1, block: 32 }, &[]);
    assert!(
        matches!(&grown, Err(Error::Kernel { why, .. }) if why.contains("grows")),
        "{grown:?}"
    );
}

#[test]
fn what_leaves_its_memory_is_not_launched() {
    let on = &mut Emulator::new(Order::Forward);
    let (keys, out) = (
        on.allocate(64).unwrap(),
        on.allocate(4 * SCHEDULE_BYTES).unwrap(),
    );
    let usual = Launch { grid: 1, block: 32 };
    let run = |on: &mut Emulator, kernel: &'static Kernel, launch, args: &[Arg<'_>]| {
        on.launch(kernel, launch, args)
    };
    let [from, to, four] = [Arg::all(&keys), Arg::all(&out), Arg::U32(4)];
    run(on, &AES_SCHEDULE, usual, &[from, to, four]).unwrap();
    let before = on.launches();
    let other = Emulator::new(Order::Forward).allocate(64).unwrap();
    let wrong: [(Launch, &[Arg<'_>]); 11] = [
        (usual, &[from, to, Arg::U32(5)]),
        (usual, &[from, to, Arg::U32(u32::MAX)]),
        (usual, &[Arg::At(&keys, 16), to, four]),
        (usual, &[Arg::At(&keys, 80), to, Arg::U32(0)]),
        (usual, &[Arg::At(&keys, 8), to, Arg::U32(1)]),
        (usual, &[from, to]),
        (usual, &[from, to, Arg::U64(4)]),
        (usual, &[Arg::all(&other), to, four]),
        (Launch { grid: 0, block: 32 }, &[from, to, four]),
        (Launch { grid: 1, block: 33 }, &[from, to, four]),
        (
            Launch {
                grid: 1,
                block: 2048,
            },
            &[from, to, four],
        ),
    ];
    for (k, (launch, args)) in wrong.iter().enumerate() {
        let ended = run(on, &AES_SCHEDULE, *launch, args);
        assert!(
            matches!(ended, Err(Error::Launch { .. } | Error::Range { .. })),
            "{k}: {ended:?}"
        );
    }
    assert_eq!(on.launches(), before);
    let mut byte = [0];
    assert!(matches!(
        on.read(&keys, 64, &mut byte),
        Err(Error::Range { .. })
    ));
    assert!(matches!(
        on.write(&keys, u64::MAX, &byte),
        Err(Error::Range { .. })
    ));
}

/// Memory of the host, with both ends of each copy inside.
#[test]
fn copies_go_where_they_should() {
    let on = &mut Emulator::new(Order::Forward);
    let (near, far, host) = (
        on.allocate(40).unwrap(),
        on.allocate(40).unwrap(),
        on.pin(24).unwrap(),
    );
    assert_eq!(bytes(on, &near), [0; 40]);
    on.host_mut(&host).unwrap().copy_from_slice(&[7; 24]);
    on.upload((&host, 4), (&near, 16), 8).unwrap();
    on.copy((&near, 12), (&far, 0), 20).unwrap();
    on.clear(&far, 4, 1).unwrap();
    on.download((&far, 0), (&host, 0), 20).unwrap();
    let want = [[0; 5].as_slice(), &[7; 7], &[0; 8], &[7; 4]].concat();
    assert_eq!(on.host(&host).unwrap(), want);
    assert!(on.upload((&host, 20), (&near, 0), 8).is_err());
    assert!(on.download((&near, 36), (&host, 0), 8).is_err());
    on.free(near);
    on.unpin(host);
}

/// On a machine without a GPU, or by a build without code for it, the reason is said; nothing panics.
#[test]
fn an_absent_gpu_is_no_failure() {
    match Driver::open(0) {
        Ok(driver) => assert_eq!(driver.name(), "cuda"),
        Err(absent) => assert!(!absent.to_string().is_empty()),
    }
    assert!(Driver::open(1 << 20).is_err());
}

/// What is copied is what was there when it was queued, whatever is queued about it afterwards, and whichever stream is first.
#[test]
fn copies_wait_for_what_was_queued_before_and_for_nothing_after() {
    for seed in 0..40 {
        let on = &mut Reordered::new(Emulator::new(Order::Forward), seed);
        let (one, two) = (
            on.allocate(64).expect("room"),
            on.allocate(64).expect("room"),
        );
        let hosts = [(); 3].map(|()| on.pin(64).expect("room"));
        on.host_mut(&hosts[0]).expect("it is there").fill(1);
        on.upload((&hosts[0], 0), (&one, 0), 64).expect("queued");
        on.download((&one, 0), (&hosts[1], 0), 64).expect("queued");
        on.clear(&one, 0, 64).expect("queued");
        on.write(&one, 16, &[2; 16]).expect("queued");
        on.copy((&one, 0), (&two, 0), 64).expect("queued");
        on.download((&two, 0), (&hosts[2], 0), 64).expect("queued");
        on.seal().expect("queued");
        on.host_mut(&hosts[0]).expect("it is there").fill(3);
        on.upload((&hosts[0], 0), (&two, 0), 64).expect("queued");
        on.upload((&hosts[0], 0), (&one, 0), 16).expect("queued");
        let halves = |a: u8, b: u8, c: u8| [[a; 16], [b; 16], [c; 16], [c; 16]].concat();
        assert_eq!(on.host(&hosts[2]).expect("it is there"), halves(0, 2, 0));
        assert_eq!(on.host(&hosts[1]).expect("it is there"), [1; 64]);
        let mut bytes = [0; 64];
        on.read(&two, 0, &mut bytes).expect("it is there");
        assert_eq!(bytes, [3; 64]);
        on.read(&one, 0, &mut bytes).expect("it is there");
        assert_eq!(bytes[..], halves(3, 2, 0));
        assert!(on.overtaken() > 0);
    }
}
