//! [`tallyfold_export::Export`].

use js_sys::Uint8Array;
use tallyfold_export::{ExportOptions, Format, Source};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::options;
use crate::error::{Result, Returned};
use crate::plain::plain;
use crate::rows::Rows;

/// Counts in a format. [`Export::pieces`] returns an object that reads its pieces, so the export itself doesn't change.
#[wasm_bindgen(js_name = CoreExport)]
pub struct Export {
    pub(crate) export: tallyfold_export::Export,
    format: Format,
}

#[wasm_bindgen(js_class = CoreExport)]
impl Export {
    /// Makes an export with the facade's options. `revision` is the number of the revision, if the rows are its changes.
    /// `others` are the names of options that other code reads.
    #[wasm_bindgen(constructor)]
    pub fn new(
        rows: Rows,
        revision: Option<u32>,
        given: &JsValue,
        others: Vec<String>,
        unix_ms: f64,
    ) -> Result<Self> {
        let options = read(given, &others, unix_ms)?;
        Self::made(Source::of_rows(rows.windowed()?, revision), &options)
    }

    /// Notes for the caller.
    pub fn notes(&self) -> Returned {
        Ok(plain(self.export.notes()))
    }

    /// The media type, for `Content-Type`.
    #[wasm_bindgen(js_name = mediaType)]
    pub fn media_type(&self) -> String {
        self.format.media_type().to_owned()
    }

    /// Whether each piece is a message of its own.
    #[wasm_bindgen(js_name = isMessages)]
    pub fn is_messages(&self) -> bool {
        self.format.is_messages()
    }

    /// All pieces, from the first one on.
    pub fn pieces(&self) -> Pieces {
        Pieces { export: self.export.clone(), piece: Vec::new() }
    }
}

impl Export {
    pub(crate) fn made(source: Source, options: &ExportOptions) -> Result<Self> {
        Ok(Self { export: tallyfold_export::Export::new(source, options)?, format: options.format })
    }
}

/// Reads the facade's options.
pub(crate) fn read(given: &JsValue, others: &[String], unix_ms: f64) -> Result<ExportOptions> {
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let mut options: ExportOptions = options("options", given, &others)?;
    options.now_ms = Some(unix_ms as i64);
    Ok(options)
}

/// The pieces of an export, which are read one after the other.
#[wasm_bindgen(js_name = CorePieces)]
pub struct Pieces {
    export: tallyfold_export::Export,
    piece: Vec<u8>,
}

#[wasm_bindgen(js_class = CorePieces)]
impl Pieces {
    /// A copy of the next piece; `None` after the last piece.
    #[wasm_bindgen(js_name = nextPiece)]
    pub fn next_piece(&mut self) -> Returned<Option<Uint8Array>> {
        let piece = self.export.next_piece(&mut self.piece);
        Ok(piece.map(|_| Uint8Array::from(self.piece.as_slice())))
    }
}
