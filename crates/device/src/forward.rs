//! The calls of a device that a wrapper around it does not change.

/// Within an `impl Device`, writes those calls that go to the device within as they are: `self`, the way to that device, and
/// the calls by name, in any order. A crate that writes it depends on `veil-session`.
///
/// ```
/// use veil_device::{Bank, Command, Device, Fault, Tag};
///
/// /// A device that counts its commands.
/// struct Counted {
///     inner: Box<dyn Device>,
///     commands: usize,
/// }
///
/// impl Device for Counted {
///     fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
///         self.commands += batch.len();
///         self.inner.submit(bank, batch, tag)
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
        ) -> Result<$crate::Bank, $crate::Fault> {
            $inner.open(layout, frame)
        }
    };
    (@close $self:ident, $inner:expr) => {
        fn close(&mut $self, bank: $crate::Bank) {
            $inner.close(bank);
        }
    };
    (@write $self:ident, $inner:expr) => {
        fn write(
            &mut $self,
            bank: $crate::Bank,
            to: $crate::Span,
            bytes: &[u8],
        ) -> Result<(), $crate::Fault> {
            $inner.write(bank, to, bytes)
        }
    };
    (@map $self:ident, $inner:expr) => {
        fn map(
            &mut $self,
            bank: $crate::Bank,
            to: $crate::Span,
        ) -> Result<&mut [u8], $crate::Fault> {
            $inner.map(bank, to)
        }
    };
    (@view $self:ident, $inner:expr) => {
        fn view(&$self, bank: $crate::Bank, from: $crate::Span) -> Result<&[u8], $crate::Fault> {
            $inner.view(bank, from)
        }
    };
    (@submit $self:ident, $inner:expr) => {
        fn submit(
            &mut $self,
            bank: $crate::Bank,
            batch: &[$crate::Command],
            tag: $crate::Tag,
        ) -> Result<(), $crate::Fault> {
            $inner.submit(bank, batch, tag)
        }
    };
    (@poll $self:ident, $inner:expr) => {
        fn poll(&mut $self) -> Option<$crate::Completion> {
            $inner.poll()
        }
    };
    (@wipe $self:ident, $inner:expr) => {
        fn wipe(&mut $self) {
            $inner.wipe();
        }
    };
}
