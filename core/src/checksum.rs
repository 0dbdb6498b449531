//! The checksum of saved documents, which detects damage such as a flipped bit. It does not protect against someone who
//! changes a document on purpose.

use std::sync::LazyLock;

use crc::{CRC_32_ISO_HDLC, Crc, Table};

/// The CRC-32 of zip and PNG files. Its table is computed at first use: stored in the WebAssembly, its 1 kB would be a
/// hundredth of the module.
static CRC: LazyLock<Crc<u32, Table<1>>> =
    LazyLock::new(|| Crc::<u32, Table<1>>::new(&CRC_32_ISO_HDLC));

/// The checksum of a text that is given in pieces, as eight hexadecimal digits.
pub(crate) fn checksum(pieces: &[&[u8]]) -> String {
    let mut digest = CRC.digest();
    for piece in pieces {
        digest.update(piece);
    }
    format!("{:08x}", digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn it_is_the_checksum_that_others_compute() {
        assert_eq!(checksum(&[b"12345", b"", b"6789"]), "cbf43926");
    }
}
