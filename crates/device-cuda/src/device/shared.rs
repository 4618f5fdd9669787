//! Programs as devices of this process have them: each is compiled once, for all lanes that run it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use veil_device::{Fault, Layout, Needs, Program};

use super::program::Code;

/// A program, compiled for a layout.
pub(super) struct Compiled {
    /// What commands about it need.
    pub(super) needs: Needs,
    pub(super) code: Code,
}

/// What came of compiling a program, or comes of it while others wait.
type Coming = Arc<OnceLock<Result<Arc<Compiled>, Fault>>>;

/// Programs that a caller still has, for layouts, compiled. Programs are public.
static KNOWN: Mutex<Vec<(Weak<Program>, Layout, Coming)>> = Mutex::new(Vec::new());

/// A program for a layout, compiled now or before.
pub(super) fn compiled(program: &Arc<Program>, layout: &Layout) -> Result<Arc<Compiled>, Fault> {
    let coming = {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(program, ..)| program.strong_count() > 0);
        let same = |(other, of, _): &&(Weak<Program>, Layout, Coming)| {
            std::ptr::eq(other.as_ptr(), Arc::as_ptr(program)) && of == layout
        };
        if let Some((_, _, coming)) = known.iter().find(same) {
            Arc::clone(coming)
        } else {
            let coming = Coming::default();
            let entry = (Arc::downgrade(program), layout.clone(), Arc::clone(&coming));
            known.push(entry);
            coming
        }
    };
    let compile = || {
        let needs = Needs::of(program, layout)?;
        let code = Code::of(program, layout)?;
        Ok(Arc::new(Compiled { needs, code }))
    };
    coming.get_or_init(compile).clone()
}

#[cfg(test)]
mod tests {
    use veil_device::{ColumnType, Instr, Region, Residency, Src};
    use veil_math::Ring;

    use super::*;

    #[test]
    fn a_program_is_compiled_once_for_a_layout() {
        let region = |column| Region {
            residency: Residency::Resident,
            column,
            components: 2,
            count: 2,
        };
        let columns = [
            ColumnType::Rows(Ring::Z64),
            ColumnType::One(Ring::Z64),
            ColumnType::One(Ring::Z64),
        ];
        let layout = |chunk_rows| Layout {
            chunk_rows,
            regions: columns.into_iter().map(region).collect(),
        };
        let make = |slot| {
            Arc::new(Program {
                ring: Ring::Z64,
                slots: 0,
                job_wide: 1,
                sums: 2,
                temps: 0,
                pairs: vec![],
                code: vec![Instr::Sum(Src::Slot(slot), 0)],
            })
        };
        let (program, refused) = (make(0), make(7));
        let [a, b, c] = [8, 8, 16]
            .map(|rows| compiled(&program, &layout(rows)).unwrap_or_else(|e| panic!("{e}")));
        assert!(Arc::ptr_eq(&a, &b), "lanes share it");
        assert!(!Arc::ptr_eq(&a, &c), "another layout");
        for _ in 0..2 {
            assert!(
                compiled(&refused, &layout(8)).is_err(),
                "there is no slot 7"
            );
        }
        let weak = Arc::downgrade(&program);
        drop(program);
        let other = make(1);
        compiled(&other, &layout(8)).unwrap_or_else(|e| panic!("{e}"));
        let known = KNOWN.lock().unwrap();
        assert!(
            !known.iter().any(|(of, ..)| of.ptr_eq(&weak)),
            "it is forgotten with its program"
        );
    }
}
