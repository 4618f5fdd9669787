//! Programs as devices of this process have them: each is compiled once, for all lanes and participants that run it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::{Fault, Layout, Program};

/// What came of compiling a program, or comes of it while others wait.
type Coming<T> = Arc<OnceLock<Result<Arc<T>, Fault>>>;

/// What a kind of device makes of programs, by the program and the layout of its workspaces, as long as a caller has the program. Programs are public.
#[derive(Debug)]
pub struct Compiled<T>(Mutex<Known<T>>);

#[derive(Debug)]
struct Known<T> {
    /// By the address of the program, which no other has while there is an entry, and the number of the layout.
    programs: BTreeMap<(usize, usize), (Weak<Program>, Coming<T>)>,
    /// Layouts of entries. Long plans have many programs and few layouts.
    layouts: Vec<Option<Layout>>,
    /// Entries at which those of programs that are gone are looked for.
    full: usize,
}

/// The least of them.
const FULL: usize = 64;

impl<T> Default for Compiled<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Compiled<T> {
    /// None yet.
    pub const fn new() -> Self {
        Compiled(Mutex::new(Known {
            programs: BTreeMap::new(),
            layouts: Vec::new(),
            full: FULL,
        }))
    }

    /// What `make` makes of a program for a layout, made now or before.
    ///
    /// # Errors
    /// That of `make`, whenever it was made.
    pub fn of(
        &self,
        program: &Arc<Program>,
        layout: &Layout,
        make: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<Arc<T>, Fault> {
        let coming = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .coming(program, layout);
        coming.get_or_init(|| make().map(Arc::new)).clone()
    }
}

impl<T> Known<T> {
    fn coming(&mut self, program: &Arc<Program>, layout: &Layout) -> Coming<T> {
        if self.programs.len() >= self.full {
            self.programs
                .retain(|_, (program, _)| program.strong_count() > 0);
            let used: std::collections::BTreeSet<usize> =
                self.programs.keys().map(|(_, layout)| *layout).collect();
            for (number, layout) in self.layouts.iter_mut().enumerate() {
                if !used.contains(&number) {
                    *layout = None;
                }
            }
            self.full = FULL.max(2 * self.programs.len());
        }
        let same = |of: &Option<Layout>| of.as_ref() == Some(layout);
        let number = self.layouts.iter().position(same).unwrap_or_else(|| {
            let free = self.layouts.iter().position(Option::is_none);
            let number = free.unwrap_or(self.layouts.len());
            if free.is_none() {
                self.layouts.push(None);
            }
            self.layouts[number] = Some(layout.clone());
            number
        });
        let address = Arc::as_ptr(program).addr();
        let entry = self.programs.entry((address, number));
        let (_, coming) = entry.or_insert_with(|| (Arc::downgrade(program), Coming::default()));
        Arc::clone(coming)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use veil_math::Ring;

    use super::*;

    fn program() -> Arc<Program> {
        Arc::new(Program {
            ring: Ring::Z64,
            slots: 0,
            job_wide: 1,
            sums: 2,
            temps: 0,
            pairs: vec![],
            code: vec![],
        })
    }

    fn layout(chunk_rows: u32) -> Layout {
        Layout {
            chunk_rows,
            regions: vec![],
        }
    }

    #[test]
    fn a_program_is_compiled_once_for_a_layout() {
        let all = Compiled::new();
        let made = Cell::new(0);
        let of = |program: &Arc<Program>, rows| {
            let make = || {
                made.set(made.get() + 1);
                Ok(rows)
            };
            all.of(program, &layout(rows), make).unwrap()
        };
        let [first, second] = [program(), program()];
        let once = of(&first, 1);
        assert!(Arc::ptr_eq(&once, &of(&first, 1)));
        assert_eq!((*of(&first, 2), *of(&second, 1), made.get()), (2, 1, 3));
        assert!(Arc::ptr_eq(&once, &of(&first, 1)) && made.get() == 3);
    }

    #[test]
    fn an_error_is_that_of_the_first_time() {
        let all = Compiled::<u32>::new();
        let program = program();
        let wrong = Fault::Program("it is wrong");
        let refused = || Err(wrong.clone());
        assert_eq!(all.of(&program, &layout(1), refused), Err(wrong.clone()));
        assert_eq!(all.of(&program, &layout(1), || Ok(1)), Err(wrong.clone()));
    }

    /// What belongs to programs that are gone goes too, and their layouts.
    #[test]
    fn nothing_outlives_its_program_for_long() {
        let all = Compiled::new();
        let kept = program();
        let there = all.of(&kept, &layout(0), || Ok(0)).unwrap();
        for rows in 1..10 * FULL as u32 {
            all.of(&program(), &layout(rows), || Ok(rows)).unwrap();
            let known = all.0.lock().unwrap();
            assert!(known.programs.len() <= FULL && known.layouts.len() <= FULL + 1);
        }
        let again = all.of(&kept, &layout(0), || Ok(1)).unwrap();
        assert!(Arc::ptr_eq(&there, &again));
    }
}
