//! Text that is never printed.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A client secret, a token, or a request body that holds one: wiped when dropped, never printed.
///
/// ```
/// let secret = tallyfold::Secret::from("canary".to_owned());
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// ```
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The text itself; only the code that sends it uses this.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.expose().is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(SecretString::from(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
