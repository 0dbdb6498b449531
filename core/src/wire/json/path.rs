//! The lexer's position in a document: the open containers and their keys. Errors get their JSON
//! path here.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::wire::json::writer::json_of;

/// The most characters of a key that a path shows.
const SHOWN_KEY_CHARS: usize = 64;

/// The most bytes that the keys of all open objects may have together.
const MOST_KEY_BYTES: usize = 4 * 1024 * 1024;

/// The open containers, and the keys of the open objects so far.
#[derive(Debug)]
pub(crate) struct Frames {
    open: Vec<Frame>,
    /// The keys of all open objects, end to end.
    text: Vec<u8>,
    /// Where each key ends in `text`.
    ends: Vec<usize>,
    shown: Shown,
}

/// Which keys a path may show; a `*` replaces the others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    /// All: the document did not come from a client's request, so it can't contain a token.
    All,
    /// The keys that the service reference names, for which this function returns `true`. Any other
    /// key may be a token or a secret that the service quotes.
    Named(fn(&str) -> bool),
}

#[derive(Clone, Copy, Debug)]
enum Frame {
    /// The number of keys in the objects around it, and whether the lexer is between its last key
    /// and the next comma.
    Object { outer_keys: usize, in_value: bool },
    /// The index of the current element.
    Array { index: u64 },
}

impl Frames {
    pub(crate) fn new(shown: Shown) -> Self {
        // Enough for the depth and the names of most documents.
        Self {
            open: Vec::with_capacity(8),
            text: Vec::with_capacity(128),
            ends: Vec::with_capacity(16),
            shown,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn in_object(&self) -> bool {
        matches!(self.open.last(), Some(Frame::Object { .. }))
    }

    pub(crate) fn open_object(&mut self) {
        self.open.push(Frame::Object { outer_keys: self.ends.len(), in_value: false });
    }

    pub(crate) fn open_array(&mut self) {
        self.open.push(Frame::Array { index: 0 });
    }

    pub(crate) fn close(&mut self) {
        if let Some(Frame::Object { outer_keys, .. }) = self.open.pop() {
            self.ends.truncate(outer_keys);
            self.text.truncate(self.ends.last().copied().unwrap_or(0));
        }
    }

    /// Continues after a comma with the next element or key.
    pub(crate) fn next(&mut self) {
        match self.open.last_mut() {
            Some(Frame::Array { index }) => *index += 1,
            Some(Frame::Object { in_value, .. }) => *in_value = false,
            None => {}
        }
    }

    /// Counts elements of the innermost array that were read elsewhere.
    pub(crate) fn skip_elements(&mut self, count: u64) {
        if let Some(Frame::Array { index }) = self.open.last_mut() {
            *index += count;
        }
    }

    /// Adds a key to the innermost object.
    pub(crate) fn add_key(&mut self, key: &str, limit: usize, offset: u64) -> Result<()> {
        let outer_keys = match self.open.last_mut() {
            Some(Frame::Object { outer_keys, in_value }) => {
                *in_value = true;
                *outer_keys
            }
            _ => self.ends.len(),
        };
        let repeated = (outer_keys..self.ends.len()).any(|index| self.key(index) == key.as_bytes());
        let over = self.ends.len() - outer_keys >= limit;
        self.text.extend_from_slice(key.as_bytes());
        self.ends.push(self.text.len());
        if repeated {
            let message = "the same key occurs twice in one object";
            return Err(self.error(offset, Code::DuplicateKey, message));
        }
        if over {
            let message = format!("an object has more than {limit} keys, which is the limit");
            return Err(self.error(offset, Code::KeyLimit, message));
        }
        if self.text.len() > MOST_KEY_BYTES {
            let message = "the keys of the open objects take more than 4 MiB";
            return Err(self.error(offset, Code::KeyLimit, message));
        }
        Ok(())
    }

    fn key(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }

    pub(crate) fn error(&self, offset: u64, code: Code, message: impl Into<String>) -> Error {
        Error::new(code, message.into()).with_place(self.path(), offset)
    }

    /// The JSON path of the current value: `$.counts[3].dimensions.write_key`.
    fn path(&self) -> String {
        let mut path = String::from("$");
        for (depth, frame) in self.open.iter().enumerate() {
            match frame {
                Frame::Array { index } => path.push_str(&format!("[{index}]")),
                Frame::Object { in_value: false, .. } => {}
                Frame::Object { .. } => {
                    let inner = self.open[depth + 1..].iter().find_map(|frame| match frame {
                        Frame::Object { outer_keys, .. } => Some(*outer_keys),
                        Frame::Array { .. } => None,
                    });
                    let end = inner.unwrap_or(self.ends.len());
                    // Each key is UTF-8: the lexer refuses any other key before it adds it.
                    let key = str::from_utf8(self.key(end - 1)).unwrap_or("?");
                    self.push_key(&mut path, key);
                }
            }
        }
        path
    }

    fn push_key(&self, path: &mut String, key: &str) {
        if matches!(self.shown, Shown::Named(is_named) if !is_named(key)) {
            path.push_str(".*");
            return;
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let cut = key.char_indices().nth(SHOWN_KEY_CHARS);
        match cut {
            None if !key.is_empty() && key.chars().all(plain) => {
                path.push('.');
                path.push_str(key);
            }
            None => push_quoted(path, key),
            Some((end, _)) => push_quoted(path, &format!("{}…", &key[..end])),
        }
    }
}

/// Adds a key that is not a plain name as a JSON string.
fn push_quoted(path: &mut String, key: &str) {
    path.push_str(&format!("[{}]", json_of(key)));
}

/// The position of an event, for the visitor's own errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(super) frames: &'a Frames,
    pub(crate) offset: u64,
}

impl Place<'_> {
    /// An error at this place.
    pub(crate) fn error(&self, code: Code, message: impl Into<String>) -> Error {
        self.frames.error(self.offset, code, message)
    }

    /// The same error, at this place.
    pub(crate) fn locate(&self, error: Error) -> Error {
        error.with_place(self.frames.path(), self.offset)
    }
}
