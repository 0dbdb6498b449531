//! How a server for web apps passes an error on, so that the client in the browser gets the same error as from
//! the service itself: in one header, which contains the code and, if the service sent one, its status.

use crate::code::Code;
use crate::error::Error;
use crate::wire::headers::named;

/// The header, such as `tallyfold-error: rate_limited 429`.
pub(crate) const HEADER: &str = "tallyfold-error";

/// The value of the header for an error.
pub(crate) fn written(code: Code, status: Option<u16>) -> String {
    match status {
        Some(status) => format!("{code} {status}"),
        None => code.to_string(),
    }
}

/// The error in the header; `None` without the header, or if this version does not know the code. Only a call that was not
/// driven to its end has the code `out_of_order`, so a response with this code is like one without the header.
pub(crate) fn read(headers: &[(&str, &str)]) -> Option<Error> {
    let value = named(headers, HEADER).next()?;
    let (name, status) = value.split_once(' ').unwrap_or((value, ""));
    let code = Code::from_name(name).filter(|code| *code != Code::OutOfOrder)?;
    let error =
        Error::new(code, "the server for web apps had this error when it asked the service")
            .passed_on();
    Some(match status.parse() {
        Ok(status) => error.with_status(status),
        Err(_) => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_as_it_was_written() {
        assert_eq!(read(&[(HEADER, "out_of_order 400")]), None);
        for code in Code::ALL.iter().filter(|code| **code != Code::OutOfOrder) {
            for status in [None, Some(429)] {
                let value = written(*code, status);
                let read = read(&[("Date", "today"), ("Tallyfold-Error", &value)]).unwrap();
                assert_eq!((read.code(), read.status()), (*code, status));
            }
        }
        assert_eq!(read(&[(HEADER, "a_code_of_later_versions 503")]), None);
        assert_eq!(read(&[]), None);
    }
}
