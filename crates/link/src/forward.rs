//! The calls of a link that a wrapper around it does not change.

/// Within an `impl Link`, writes those calls that go to the link within as they are: `self`, the way to that link, and the
/// calls by name, in any order. A crate that writes it depends on `veil-session`.
///
/// ```
/// use veil_link::{Link, LinkError};
/// use veil_session::{Channel, Peer};
///
/// /// A link that counts what it sends.
/// struct Counted {
///     inner: Box<dyn Link>,
///     posted: u64,
/// }
///
/// impl Link for Counted {
///     fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
///         let posted = self.inner.post(to, at, bytes)?;
///         self.posted += u64::from(posted);
///         Ok(posted)
///     }
///
///     veil_link::forward!(self, self.inner, bind expect land poll wait abort under_way close meters);
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($self:ident, $inner:expr, $($call:ident)+) => {
        $($crate::forward!(@$call $self, $inner);)+
    };
    (@bind $self:ident, $inner:expr) => {
        fn bind(&mut $self, session: ::veil_session::SessionId) {
            $inner.bind(session);
        }
    };
    (@post $self:ident, $inner:expr) => {
        fn post(
            &mut $self,
            to: ::veil_session::Peer,
            at: ::veil_session::Channel,
            bytes: &[u8],
        ) -> Result<bool, $crate::LinkError> {
            $inner.post(to, at, bytes)
        }
    };
    (@post_pieces $self:ident, $inner:expr) => {
        fn post_pieces(
            &mut $self,
            to: ::veil_session::Peer,
            at: ::veil_session::Channel,
            pieces: &[&[u8]],
        ) -> Result<bool, $crate::LinkError> {
            $inner.post_pieces(to, at, pieces)
        }
    };
    (@land_pieces $self:ident, $inner:expr) => {
        fn land_pieces(
            &mut $self,
            from: ::veil_session::Peer,
            at: ::veil_session::Channel,
            bytes: usize,
            put: &mut dyn FnMut(&[u8]),
        ) -> Result<bool, $crate::LinkError> {
            $inner.land_pieces(from, at, bytes, put)
        }
    };
    (@land_whole $self:ident, $inner:expr) => {
        fn land_whole(
            &mut $self,
            from: ::veil_session::Peer,
            at: ::veil_session::Channel,
            into: &mut ::veil_session::Wiped<u8>,
        ) -> Result<bool, $crate::LinkError> {
            $inner.land_whole(from, at, into)
        }
    };
    (@expect $self:ident, $inner:expr) => {
        fn expect(
            &mut $self,
            from: ::veil_session::Peer,
            at: ::veil_session::Channel,
            bytes: u64,
        ) -> Result<(), $crate::LinkError> {
            $inner.expect(from, at, bytes)
        }
    };
    (@land $self:ident, $inner:expr) => {
        fn land(
            &mut $self,
            from: ::veil_session::Peer,
            at: ::veil_session::Channel,
            into: &mut [u8],
        ) -> Result<bool, $crate::LinkError> {
            $inner.land(from, at, into)
        }
    };
    (@poll $self:ident, $inner:expr) => {
        fn poll(&mut $self) -> Result<bool, $crate::LinkError> {
            $inner.poll()
        }
    };
    (@wait $self:ident, $inner:expr) => {
        fn wait(&mut $self, until: ::std::time::Instant) -> Result<$crate::Woken, $crate::LinkError> {
            $inner.wait(until)
        }
    };
    (@abort $self:ident, $inner:expr) => {
        fn abort(&mut $self) {
            $inner.abort();
        }
    };
    (@under_way $self:ident, $inner:expr) => {
        fn under_way(&$self) -> bool {
            $inner.under_way()
        }
    };
    (@close $self:ident, $inner:expr) => {
        fn close(&mut $self, until: ::std::time::Instant) -> Result<(), $crate::LinkError> {
            $inner.close(until)
        }
    };
    (@meters $self:ident, $inner:expr) => {
        fn meters(&$self) -> $crate::Meters {
            $inner.meters()
        }
    };
}
