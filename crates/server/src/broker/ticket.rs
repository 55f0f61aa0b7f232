//! What a call shows to be a worker's: sealed under a key that all servers of the store share, so only they can make one or
//! read one. It holds no API key, only what one is looked up by; that it still counts is looked up with every call.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use interlock_broker::{SealedAs, Sealer};
use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

use crate::identity::LastingCredential;

/// Its worker asks for another one before it ends.
pub const TICKET_LIFETIME: Millis = Millis::from_mins(15);

#[derive(Clone, Serialize, Deserialize)]
pub struct Ticket {
    /// Whose calls they are counted as; what they may do is up to the credential.
    pub tenant: TenantId,
    pub credential: LastingCredential,
    pub channel: String,
    /// What its calls and their answers are sealed with.
    pub key: String,
    pub expires_at: Timestamp,
}

impl Ticket {
    pub fn seal(&self, sealer: &Sealer) -> String {
        let plain = serde_json::to_vec(self).expect("a ticket has only texts and numbers");
        BASE64.encode(sealer.seal(SealedAs::Ticket, &plain))
    }

    /// `None` where no server of this store has made it.
    pub fn open(sealer: &Sealer, text: &[u8]) -> Option<Self> {
        let opened = sealer.open(SealedAs::Ticket, &BASE64.decode(text).ok()?).ok()?;
        serde_json::from_slice(&opened).ok()
    }
}

#[cfg(test)]
mod tests {
    use interlock_broker::fresh_key;

    use super::*;
    use crate::identity::ServerSecret;

    fn ticket() -> Ticket {
        let credential = LastingCredential::Certificate { uri: "interlock://…".to_owned(), expires_at: Timestamp(9) };
        let tenant = TenantId::from_bytes([1; 16]);
        Ticket { tenant, credential, channel: "c".to_owned(), key: "k".to_owned(), expires_at: Timestamp(7) }
    }

    #[test]
    fn servers_of_one_store_open_it_and_others_do_not() {
        let secret = ServerSecret::random();
        let sealed = ticket().seal(&Sealer::new(&secret.broker_key()));
        let opened = Ticket::open(&Sealer::new(&secret.broker_key()), sealed.as_bytes()).unwrap();
        assert_eq!((opened.tenant, &*opened.channel, opened.expires_at), (ticket().tenant, "c", Timestamp(7)));
        assert!(Ticket::open(&Sealer::new(&ServerSecret::random().broker_key()), sealed.as_bytes()).is_none());
        assert_ne!(secret.broker_key(), secret.hash("vault", b"").0, "one key, one purpose");
    }

    #[test]
    fn what_was_changed_is_none() {
        let sealer = Sealer::new(&fresh_key());
        let sealed = ticket().seal(&sealer);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(Ticket::open(&sealer, &changed).is_none(), "byte {at}");
        }
        let as_call = sealer.seal(SealedAs::Call { channel: "c", kind: "session.call" }, b"{}");
        for text in [String::new(), "{}".to_owned(), BASE64.encode(as_call)] {
            assert!(Ticket::open(&sealer, text.as_bytes()).is_none(), "{text}");
        }
    }
}
