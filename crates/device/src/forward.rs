//! The calls of a device that a wrapper around it does not change.

/// Within an `impl Device`, writes those calls that go to the device within as they are: `self`, the way to that device, and
/// the calls by name, in any order. A crate that writes it depends on `veil-session`,
/// and on `veil-math` for `chunk_rows`. `engines`, `chunk_rows`, `window`, `ahead` and `exchange` have a body
/// in [`Device`](crate::Device): no error names a wrapper that leaves them out, and hides them so.
///
/// ```
/// use veil_device::{Workspace, Command, Device, Fault, Tag};
///
/// /// A device that counts its commands.
/// struct Counted {
///     inner: Box<dyn Device>,
///     commands: usize,
/// }
///
/// impl Device for Counted {
///     fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
///         self.commands += batch.len();
///         self.inner.submit(workspace, batch, tag)
///     }
///
///     veil_device::forward!(self, self.inner, name bind load_key load open close write map view poll wipe);
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($self:ident, $inner:expr, $($call:ident)+) => {
        $($crate::forward!(@$call $self, $inner);)+
    };
    (@name $self:ident, $inner:expr) => {
        fn name(&$self) -> &'static str {
            $inner.name()
        }
    };
    (@engines $self:ident, $inner:expr) => {
        fn engines(&$self) -> Option<u32> {
            $inner.engines()
        }
    };
    (@chunk_rows $self:ident, $inner:expr) => {
        fn chunk_rows(&$self, ring: ::veil_math::Ring) -> Option<u64> {
            $inner.chunk_rows(ring)
        }
    };
    (@window $self:ident, $inner:expr) => {
        fn window(&$self) -> usize {
            $inner.window()
        }
    };
    (@ahead $self:ident, $inner:expr) => {
        fn ahead(&$self) -> bool {
            $inner.ahead()
        }
    };
    (@bind $self:ident, $inner:expr) => {
        fn bind(&mut $self, session: ::veil_session::SessionId) {
            $inner.bind(session);
        }
    };
    (@load_key $self:ident, $inner:expr) => {
        fn load_key(
            &mut $self,
            id: $crate::KeyId,
            key: &::veil_session::Secret,
        ) -> Result<(), $crate::Fault> {
            $inner.load_key(id, key)
        }
    };
    (@load $self:ident, $inner:expr) => {
        fn load(
            &mut $self,
            program: &::std::sync::Arc<$crate::Program>,
            layout: &$crate::Layout,
        ) -> Result<$crate::ProgramId, $crate::Fault> {
            $inner.load(program, layout)
        }
    };
    (@open $self:ident, $inner:expr) => {
        fn open(
            &mut $self,
            layout: &$crate::Layout,
            frame: $crate::Frame,
        ) -> Result<$crate::Workspace, $crate::Fault> {
            $inner.open(layout, frame)
        }
    };
    (@reuse $self:ident, $inner:expr) => {
        fn reuse(
            &mut $self,
            workspace: $crate::Workspace,
            frame: $crate::Frame,
            columns: (&[$crate::Span], &[$crate::Span]),
        ) -> Result<bool, $crate::Fault> {
            $inner.reuse(workspace, frame, columns)
        }
    };
    (@close $self:ident, $inner:expr) => {
        fn close(&mut $self, workspace: $crate::Workspace) {
            $inner.close(workspace);
        }
    };
    (@write $self:ident, $inner:expr) => {
        fn write(
            &mut $self,
            workspace: $crate::Workspace,
            to: $crate::Span,
            bytes: &[u8],
        ) -> Result<(), $crate::Fault> {
            $inner.write(workspace, to, bytes)
        }
    };
    (@map $self:ident, $inner:expr) => {
        fn map(
            &mut $self,
            workspace: $crate::Workspace,
            to: $crate::Span,
        ) -> Result<&mut [u8], $crate::Fault> {
            $inner.map(workspace, to)
        }
    };
    (@swap $self:ident, $inner:expr) => {
        fn swap(
            &mut $self,
            workspace: $crate::Workspace,
            of: $crate::Span,
            bytes: &mut ::veil_session::Wiped<u8>,
        ) -> Result<bool, $crate::Fault> {
            $inner.swap(workspace, of, bytes)
        }
    };
    (@view $self:ident, $inner:expr) => {
        fn view(&$self, workspace: $crate::Workspace, from: $crate::Span) -> Result<&[u8], $crate::Fault> {
            $inner.view(workspace, from)
        }
    };
    (@submit $self:ident, $inner:expr) => {
        fn submit(
            &mut $self,
            workspace: $crate::Workspace,
            batch: &[$crate::Command],
            tag: $crate::Tag,
        ) -> Result<(), $crate::Fault> {
            $inner.submit(workspace, batch, tag)
        }
    };
    (@exchange $self:ident, $inner:expr) => {
        fn exchange(
            &mut $self,
            workspace: $crate::Workspace,
            rounds: &[::std::sync::Arc<$crate::Round>],
            tag: $crate::Tag,
        ) -> Result<usize, $crate::Fault> {
            $inner.exchange(workspace, rounds, tag)
        }
    };
    (@poll $self:ident, $inner:expr) => {
        fn poll(&mut $self) -> Result<Option<$crate::Completion>, $crate::Fault> {
            $inner.poll()
        }
    };
    (@wipe $self:ident, $inner:expr) => {
        fn wipe(&mut $self) {
            $inner.wipe();
        }
    };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use veil_math::Ring;

    use crate::{Cpu, Device, Fault, Round, Tag, Workspace};

    /// A device with all calls that have a body of their own.
    struct Within(Cpu);

    impl Device for Within {
        fn engines(&self) -> Option<u32> {
            Some(2)
        }

        fn chunk_rows(&self, ring: Ring) -> Option<u64> {
            Some(ring.bits().into())
        }

        fn window(&self) -> usize {
            3
        }

        fn ahead(&self) -> bool {
            true
        }

        fn exchange(
            &mut self,
            _: Workspace,
            rounds: &[Arc<Round>],
            _: Tag,
        ) -> Result<usize, Fault> {
            Ok(rounds.len() + 7)
        }

        crate::forward!(self, self.0, name bind load_key load open close write map view submit poll wipe);
    }

    struct Around(Within);

    impl Device for Around {
        crate::forward!(self, self.0, name engines chunk_rows window ahead bind load_key load open close write map view submit exchange poll wipe);
    }

    #[test]
    fn calls_with_a_body_go_within_too() {
        let mut around = Around(Within(Cpu::detect()));
        assert_eq!(around.engines(), Some(2));
        assert_eq!(around.chunk_rows(Ring::Z64), Some(64));
        assert_eq!(around.window(), 3);
        assert!(around.ahead());
        assert_eq!(around.exchange(Workspace(0), &[], Tag(0)), Ok(7));
    }
}
