//! The login by SASL, before AMQP begins (part 5, 5.3 of the specification).

use crate::error::AmqpError;
use crate::frames::{Frames, Kind, Output, SASL};
use crate::read::{Item, Reader};
use crate::write::{Value, Writer};

const MECHANISMS: u64 = 0x40;
const INIT: u8 = 0x41;
const CHALLENGE: u64 = 0x42;
const OUTCOME: u64 = 0x44;

/// How to log in.
#[derive(Clone, Debug)]
pub enum Login {
    /// Without a name: the right to use a node is shown by tokens afterwards.
    Anonymous,
    /// By name and password.
    Plain {
        /// The name.
        user: String,
        /// Its password.
        password: String,
    },
}

impl Login {
    fn mechanism(&self) -> &'static str {
        match self {
            Self::Anonymous => "ANONYMOUS",
            Self::Plain { .. } => "PLAIN",
        }
    }

    fn response(&self) -> Vec<u8> {
        match self {
            Self::Anonymous => Vec::new(),
            Self::Plain { user, password } => format!("\0{user}\0{password}").into_bytes(),
        }
    }

    /// Logs in.
    pub(crate) async fn run(
        &self,
        frames: &mut Frames,
        output: &mut Output,
        host: &str,
    ) -> Result<(), AmqpError> {
        output.raw(&SASL).await?;
        frames.protocol(SASL).await?;
        let mechanism = self.mechanism();
        loop {
            let frame = frames.next().await?;
            if frame.kind != Kind::Sasl as u8 {
                return Err(AmqpError::Protocol("a frame of AMQP comes before the login".into()));
            }
            let Some(Item::Described(code, item)) = Reader::new(&frame.body).next()? else {
                return Err(AmqpError::Protocol("an empty frame of SASL".into()));
            };
            let Item::List(mut fields) = *item else {
                return Err(AmqpError::Protocol("a frame of SASL without fields".into()));
            };
            match code {
                MECHANISMS => {
                    let offered = fields.field()?.texts().unwrap_or_default();
                    if !offered.contains(&mechanism) {
                        let offered = offered.join(", ");
                        let what = format!("{mechanism} is none of its mechanisms ({offered})");
                        return Err(AmqpError::Login(what));
                    }
                    let mut writer = Writer::default();
                    let response = self.response();
                    writer.described(
                        INIT,
                        &[Value::Symbol(mechanism), Value::Binary(&response), Value::Text(host)],
                    );
                    output.frame(Kind::Sasl, 0, &writer.into_bytes()).await?;
                }
                OUTCOME => {
                    return match fields.field()?.number() {
                        Some(0) => Ok(()),
                        Some(1) => Err(AmqpError::Login("wrong name or password".into())),
                        code => Err(AmqpError::Login(format!("the outcome is {code:?}"))),
                    };
                }
                CHALLENGE => {
                    return Err(AmqpError::Login(format!("{mechanism} has no challenges")));
                }
                other => {
                    let what = format!("an unknown frame of SASL (0x{other:02x})");
                    return Err(AmqpError::Protocol(what));
                }
            }
        }
    }
}
