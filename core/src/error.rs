//! The one error type: what went wrong, and where.

use std::borrow::Cow;
use std::fmt::{self, Display};

use crate::code::{Code, Kind};
use crate::spelling::{Name, Spelling, Word, Words};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what would be right.
///
/// No error holds a secret, a token, or text of a token endpoint's body.
///
/// ```
/// let error = tallyfold::Timestamp::parse("2026-01-01T00:00:00").unwrap_err();
/// assert_eq!(error.code().as_str(), "invalid_timestamp");
/// assert_eq!(error.kind().as_str(), "config");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    code: Code,
    message: Words,
    argument: Option<Name>,
    status: Option<u16>,
    path: Option<String>,
    offset: Option<u64>,
    retry_after_s: Option<u64>,
    excerpt: Option<String>,
    is_lasting: bool,
    is_passed_on: bool,
}

impl Error {
    /// Creates an error, for hosts and crates that detect an error themselves. The message must state
    /// what would be right, and must not contain a secret.
    pub fn new(code: Code, message: impl Into<Words>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            argument: None,
            status: None,
            path: None,
            offset: None,
            retry_after_s: None,
            excerpt: None,
            is_lasting: false,
            is_passed_on: false,
        }))
    }

    /// An error about an argument.
    pub fn argument(name: impl Into<Name>, code: Code, message: impl Into<Words>) -> Self {
        Self::new(code, message).with_argument(name)
    }

    /// The same error, for the argument with that name.
    #[must_use]
    pub fn with_argument(mut self, name: impl Into<Name>) -> Self {
        self.0.argument = Some(name.into());
        self
    }

    /// The same error, with `own` in place of the argument's name `name` wherever the error mentions it. This is for
    /// a host that has its own name for an argument.
    #[must_use]
    pub fn renaming(mut self, name: &str, own: &Name) -> Self {
        let inner = &mut *self.0;
        let names = inner.message.names().chain(&mut inner.argument);
        for found in names.filter(|found| found.as_str() == name) {
            *found = own.clone();
        }
        self
    }

    /// The same error, caused by that HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    pub(crate) fn with_place(mut self, path: String, offset: u64) -> Self {
        self.0.path = Some(path);
        self.0.offset = Some(offset);
        self
    }

    pub(crate) fn with_path(mut self, path: String) -> Self {
        self.0.path = Some(path);
        self
    }

    /// The same error, found at that byte.
    #[must_use]
    pub fn with_offset(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    pub(crate) fn with_retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after_s = Some(seconds);
        self
    }

    /// The same error, with the beginning of the body that explains it.
    #[must_use]
    pub fn with_excerpt(mut self, excerpt: Option<String>) -> Self {
        self.0.excerpt = excerpt;
        self
    }

    /// The same error, marked as one whose cause does not go away by itself.
    pub(crate) fn lasting(mut self) -> Self {
        self.0.is_lasting = true;
        self
    }

    /// Whether the cause does not go away by itself, so that a retry would fail, too.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.0.is_lasting
    }

    /// The same error, marked as one that a server for web apps has passed on.
    pub(crate) fn passed_on(mut self) -> Self {
        self.0.is_passed_on = true;
        self
    }

    /// Whether a server for web apps has passed the error on. That server has already retried its call.
    pub(crate) fn is_passed_on(&self) -> bool {
        self.0.is_passed_on
    }

    /// The same error, with text before its message.
    pub(crate) fn beginning(mut self, text: String) -> Self {
        self.0.message = std::mem::take(&mut self.0.message).after(text);
        self
    }

    /// Adds text to the message.
    pub(crate) fn add(&mut self, words: impl Into<Word>) {
        self.0.message = std::mem::take(&mut self.0.message).and(words);
    }

    /// What went wrong.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Who has to act.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.code.kind()
    }

    /// A sentence that states what was wrong and what would be right, without the path and offset.
    #[must_use]
    pub fn message(&self) -> String {
        self.0.message.to_string()
    }

    /// The name of the argument at fault, as Rust spells it.
    #[must_use]
    pub fn argument_name(&self) -> Option<&str> {
        self.0.argument.as_ref().map(Name::as_str)
    }

    /// The name of the argument at fault, as callers of that host write it.
    #[must_use]
    pub fn argument_in(&self, spelling: Spelling) -> Option<Cow<'_, str>> {
        self.0.argument.as_ref().map(|name| name.spelled(spelling))
    }

    /// The whole text of the error, with the names of arguments spelled for that host.
    pub fn text_in(&self, spelling: Spelling) -> impl Display {
        Text { error: self, spelling }
    }

    /// The text of the error without its code and its argument, for a host that shows these in
    /// other places.
    pub fn sentence_in(&self, spelling: Spelling) -> impl Display {
        Sentence { error: self, spelling }
    }

    /// The HTTP status, if the error was caused by one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The JSON path of the value at fault, such as `$.counts[3].success`.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The offset of the byte at fault from the start of the body, or of the rules.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The seconds after which the service allows the next request, if it has requested a wait
    /// (`Retry-After`); below 2^53.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        self.0.retry_after_s
    }

    /// The beginning of the body with which an API refused a request, as one line of at most 200
    /// characters. The token, the client secret, and the values of the headers that the caller adds
    /// (except `user-agent`) are masked in it. `None` if the body is HTML.
    #[must_use]
    pub fn excerpt(&self) -> Option<&str> {
        self.0.excerpt.as_deref()
    }
}

/// An error's text for the callers of one host.
struct Text<'a> {
    error: &'a Error,
    spelling: Spelling,
}

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, argument, .. } = &*self.error.0;
        write!(f, "{code}: ")?;
        if let Some(argument) = argument {
            write!(f, "{}: ", argument.spelled(self.spelling))?;
        }
        self.error.sentence_in(self.spelling).fmt(f)
    }
}

/// The message of an error, and its place in a response.
struct Sentence<'a> {
    error: &'a Error,
    spelling: Spelling,
}

impl Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, status, path, offset, excerpt, .. } = &*self.error.0;
        message.write(f, self.spelling)?;
        let status = status.map(|status| match excerpt {
            Some(excerpt) => format!("status {status}: {excerpt}"),
            None => format!("status {status}"),
        });
        let path = path.as_ref().map(|path| format!("at {path}"));
        // The message about invalid rules already contains the line and the column.
        let offset = offset.filter(|_| self.error.code() != Code::InvalidRules);
        let offset = offset.map(|offset| format!("byte {offset}"));
        let places = [status, path, offset].into_iter().flatten();
        let mut before = " (";
        for place in places {
            write!(f, "{before}{place}")?;
            before = ", ";
        }
        if before == ", " {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text_in(Spelling::Rust).fmt(f)
    }
}

impl std::error::Error for Error {}
