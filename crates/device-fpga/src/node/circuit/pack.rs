//! Commands of as many columns as fit: segments that lie behind one another are one.

/// Where words come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// An address.
    At(u64),
    /// A column that is as long as any.
    Constant(u64),
}

/// Words that each stream of a command has next: those of its operands, and those of its results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) from: Vec<Source>,
    pub(super) to: Vec<u64>,
    pub(super) words: u32,
}

/// A command: of each stream, where its words lie.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Packed {
    /// Words of the wave's columns before it.
    pub(super) first: u32,
    pub(super) words: u32,
    pub(super) from: Vec<Vec<(u64, u32)>>,
    pub(super) to: Vec<Vec<(u64, u32)>>,
}

impl Packed {
    /// Segments of sources, and of results.
    fn segments(&self) -> [usize; 2] {
        [&self.from, &self.to].map(|of| of.iter().map(Vec::len).sum())
    }

    /// The same with `words` words of a run behind it.
    fn with(&self, run: &Run, words: u32) -> Self {
        let mut more = self.clone();
        more.words += words;
        more.from.resize(run.from.len(), Vec::new());
        more.to.resize(run.to.len(), Vec::new());
        for (stream, from) in more.from.iter_mut().zip(&run.from) {
            match (*from, stream.last_mut()) {
                (Source::Constant(base), Some((at, all))) if *at == base => *all += words,
                (Source::At(at) | Source::Constant(at), _) => append(stream, at, words),
            }
        }
        for (stream, at) in more.to.iter_mut().zip(&run.to) {
            append(stream, *at, words);
        }
        more
    }
}

fn append(stream: &mut Vec<(u64, u32)>, at: u64, words: u32) {
    match stream.last_mut() {
        Some((first, all)) if *first + 16 * u64::from(*all) == at => *all += words,
        _ => stream.push((at, words)),
    }
}

/// Runs as commands of at most `longest` words, of whose sources and results there are no more segments than fit.
pub(super) fn pack(runs: &[Run], longest: u32, fits: impl Fn(usize, usize) -> bool) -> Vec<Packed> {
    let (mut all, mut now) = (Vec::new(), Packed::default());
    for run in runs {
        let mut run = run.clone();
        while run.words > 0 {
            let words = run.words.min(longest - now.words);
            let more = now.with(&run, words);
            let [sources, results] = more.segments();
            if words == 0 || (!fits(sources, results) && now.words > 0) {
                let first = now.first + now.words;
                all.push(std::mem::take(&mut now));
                now.first = first;
                continue;
            }
            now = more;
            run.words -= words;
            let bytes = 16 * u64::from(words);
            for from in &mut run.from {
                if let Source::At(at) = from {
                    *at += bytes;
                }
            }
            run.to.iter_mut().for_each(|at| *at += bytes);
        }
    }
    if now.words > 0 {
        all.push(now);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Run, Source, pack};

    fn run(a: u64, b: Source, to: u64, words: u32) -> Run {
        Run {
            from: vec![Source::At(16 * a), b],
            to: vec![16 * to],
            words,
        }
    }

    #[test]
    fn neighbours_are_one_segment() {
        let runs = [
            run(0, Source::At(16 * 40), 80, 4),
            run(4, Source::At(16 * 60), 84, 4),
            run(20, Source::Constant(1600), 88, 4),
            run(24, Source::Constant(1600), 92, 4),
        ];
        let packed = pack(&runs, 64, |from, to| from + to <= 6);
        assert_eq!(packed.len(), 1);
        let from = vec![vec![(0, 8), (320, 8)], vec![(640, 4), (960, 4), (1600, 8)]];
        assert_eq!(packed[0].from, from);
        assert_eq!(packed[0].to, [[(1280, 16)]]);
        let packed = pack(&runs, 64, |from, to| from + to <= 5);
        let words: Vec<_> = packed.iter().map(|of| (of.first, of.words)).collect();
        assert_eq!(words, [(0, 8), (8, 8)]);
        let packed = pack(&runs, 6, |_, _| true);
        let words: Vec<_> = packed.iter().map(|of| (of.first, of.words)).collect();
        assert_eq!(words, [(0, 6), (6, 6), (12, 4)]);
        assert_eq!(packed[1].from[0], [(96, 2), (320, 4)]);
    }
}
