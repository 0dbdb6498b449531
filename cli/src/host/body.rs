//! Decodes the bodies of responses. The fuzz targets include this file, so it uses nothing else of this crate.

use std::io::{self, Write};

use flate2::write::GzDecoder;

/// How many compressed bytes are decoded at once. They decode to at most about 1 MB.
const PIECE: usize = 1024;

/// Decodes a body: one gzip member and nothing after it, or bytes as they are.
pub(crate) enum Body {
    /// Not compressed.
    Plain,
    /// Compressed.
    Gzip(Box<GzDecoder<Vec<u8>>>),
}

impl Body {
    /// Creates the decoder for this `content-encoding`, which the core has accepted.
    pub(crate) fn of(coding: Option<&str>) -> Self {
        let coding = coding.map(|text| text.trim().to_ascii_lowercase());
        match coding.as_deref() {
            Some("gzip" | "x-gzip") => Self::Gzip(Box::new(GzDecoder::new(Vec::new()))),
            _ => Self::Plain,
        }
    }

    /// Decodes a chunk, and passes the result to `take` in pieces.
    ///
    /// # Errors
    /// The errors of `take`, and an error for bytes that are not gzip.
    pub(crate) fn decode<E: From<io::Error>>(
        &mut self,
        chunk: &[u8],
        take: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self::Gzip(decoder) = self else {
            return take(chunk);
        };
        for piece in chunk.chunks(PIECE) {
            let mut rest = piece;
            while !rest.is_empty() {
                let taken = decoder.write(rest)?;
                if taken == 0 {
                    let message = "bytes after the end of the gzip member";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message).into());
                }
                rest = &rest[taken..];
                take_out(decoder, take)?;
            }
        }
        Ok(())
    }

    /// Checks that the body is complete, and passes the rest to `take`.
    ///
    /// # Errors
    /// Same as [`Body::decode`].
    pub(crate) fn end<E: From<io::Error>>(
        &mut self,
        take: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self::Gzip(decoder) = self else {
            return Ok(());
        };
        decoder.try_finish()?;
        take_out(decoder, take)
    }
}

fn take_out<E>(
    decoder: &mut GzDecoder<Vec<u8>>,
    take: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    if !decoder.get_ref().is_empty() {
        take(decoder.get_ref())?;
        decoder.get_mut().clear();
    }
    Ok(())
}
