//! Exact counts in the formats of observability systems.
//!
//! An [`Export`] takes a table, a series or a revision of a follow, and encodes its counts as pieces of bytes. The pieces
//! form one text, which is written to a file or served to a scrape, or each piece is a whole message that is sent on its
//! own. Like the core, it does no I/O and reads no clock. Its memory does not grow with the number of rows.
//!
//! - [`Format`] lists the formats. Each has its own file in `formats/` and one line in the list in `formats.rs`.
//! - [`ExportOptions`] sets the format, extra labels, and which windows are written.
//! - By default, only settled windows are written to systems that store samples, because what was sent there can't be
//!   withdrawn. Late changes are written as signed changes, each with the number of its revision.
//!
//! ```
//! use tallyfold::{Aggregator, AggregatorOptions};
//! use tallyfold_export::{Export, ExportOptions, Format};
//!
//! let body = br#"{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
//!     "totalDelivered": "7", "totalErrors": "1", "totalFiltered": "0",
//!     "counts": [{"success": "7", "errors": "1", "filtered": "0",
//!                 "dimensions": {"integration": "warehouse"}}]}"#;
//! let mut aggregator = Aggregator::new(&["integration"], AggregatorOptions::default())?;
//! aggregator.push(body)?;
//! let table = aggregator.finish()?;
//!
//! let mut export = Export::new(&table, &ExportOptions::with_defaults(Format::OpenMetrics))?;
//! let mut text = Vec::new();
//! export.write_to(&mut text).expect("a vector takes everything");
//! assert!(String::from_utf8_lossy(&text).contains(
//!     r#"tallyfold_by_integration_success_events{integration="warehouse"} 7 1767226499.999"#
//! ));
//! # Ok::<(), tallyfold::Error>(())
//! ```
#![forbid(unsafe_code)]

mod context;
mod escape;
mod export;
mod form;
mod formats;
mod ledger;
mod note;
mod options;
mod outbox;
mod piece;
mod position;
mod sample;
mod scrape;
mod source;
mod walk;

pub use context::{Labels, Names};
pub use export::Export;
pub use form::Windows;
pub use formats::Format;
pub use formats::openmetrics::Seconds;
pub use ledger::{Addition, Counter, Ledger};
pub use note::{Note, NoteKind};
pub use options::ExportOptions;
pub use outbox::{Outbox, PendingChanges};
pub use scrape::{Family, FamilyKind, Scrape, ScrapeFormat};
pub use source::Source;
pub use tallyfold::sending::{
    Guarantee, Message, PushOptions, PushReport, PushStep, Rejected, TargetHeaders,
};
pub use walk::{Counted, Place, Samples};

/// A push of an export.
pub type Push = tallyfold::sending::Push<Export>;
