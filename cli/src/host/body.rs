//! Decodes the bodies of responses in bounded pieces.

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
    /// The decoder for this `content-encoding`, which the core has accepted.
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
    /// The errors of `take`, and one for bytes that are not gzip.
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
    /// As [`Body::decode`].
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

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn decoded(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut body = Body::of(Some("gzip"));
        let mut out = Vec::new();
        let mut take = |piece: &[u8]| -> io::Result<()> {
            out.extend_from_slice(piece);
            Ok(())
        };
        for chunk in bytes.chunks(size) {
            body.decode(chunk, &mut take)?;
        }
        body.end(&mut take)?;
        Ok(out)
    }

    #[test]
    fn one_member_is_decoded_however_it_is_cut() {
        let text: Vec<u8> = (0..100_000_u32)
            .flat_map(|number| number.to_string().into_bytes())
            .collect();
        for size in [1, 7, 1024, 1 << 20] {
            assert_eq!(decoded(&gzip(&text), size).unwrap(), text);
        }
        assert_eq!(decoded(&gzip(b""), 3).unwrap(), b"");
    }

    #[test]
    fn what_is_cut_changed_or_followed_by_more_is_refused() {
        let whole = gzip(b"{\"counts\": []}");
        for end in 0..whole.len() {
            assert!(decoded(&whole[..end], 5).is_err(), "cut at {end}");
        }
        let twice = [whole.clone(), whole.clone()].concat();
        assert!(decoded(&twice, 1).is_err() && decoded(&twice, 4096).is_err());
        assert!(decoded(&[&whole[..], b"x"].concat(), 4096).is_err());
        let mut changed = whole;
        let last = changed.len() - 6;
        changed[last] ^= 1;
        assert!(decoded(&changed, 9).is_err());
    }

    #[test]
    fn a_small_body_that_decodes_to_much_comes_in_pieces() {
        let bytes = gzip(&vec![b' '; 50_000_000]);
        let mut largest = 0;
        let mut take = |piece: &[u8]| -> io::Result<()> {
            largest = largest.max(piece.len());
            Ok(())
        };
        Body::of(Some("gzip")).decode(&bytes, &mut take).unwrap();
        assert!(largest <= 1_100_000, "{largest}");
    }
}
