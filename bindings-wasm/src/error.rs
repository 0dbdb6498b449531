//! Converts errors to JavaScript. This is the only place that does so.

use std::borrow::Cow;
use std::cell::RefCell;

use js_sys::Function;
use serde::Serialize;
use tallyfold::{Code, Error, Name, Spelling};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::plain::plain;

thread_local! {
    static FACTORY: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Sets how errors are made: a function that takes an error's fields and returns the error.
#[wasm_bindgen(js_name = setErrorFactory)]
pub fn set_error_factory(factory: Function) {
    FACTORY.set(Some(factory));
}

/// What a binding returns.
pub(crate) type Result<T> = std::result::Result<T, Thrown>;

/// The return type of an exported function that makes an object and can't fail. As a `Result`, it has three return values in
/// WebAssembly. V8 (Node 20) inlines calls of functions with at most one return value. If an inlined call makes an object that
/// optimized code did not expect, such as an object with a fraction in place of a whole number, V8 ends the process.
pub(crate) type Returned<T = JsValue> = Result<T>;

/// An error as a JavaScript value.
pub struct Thrown(JsValue);

impl Thrown {
    /// The error for an argument that can't be passed to the core. `argument` is its name in JavaScript.
    pub(crate) fn refused(argument: &str, want: &str) -> Self {
        Error::argument(Name::of_caller(argument), Code::InvalidArgument, want.to_owned()).into()
    }

    /// The error for an argument that is missing.
    pub(crate) fn missing(argument: &str) -> Self {
        Error::argument(Name::of_caller(argument), Code::MissingArgument, "required").into()
    }

    /// What the caller's own code threw while an argument was read.
    pub(crate) fn foreign(thrown: JsValue) -> Self {
        Self(thrown)
    }
}

/// The fields of an error in JavaScript.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    code: &'static str,
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    /// Below 2^53: a body of more bytes would take a century to arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<f64>,
    /// Also below 2^53.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<&'a str>,
}

impl From<Error> for Thrown {
    fn from(error: Error) -> Self {
        let fields = plain(&Fields {
            code: error.code().as_str(),
            kind: error.kind().as_str(),
            message: error.text_in(Spelling::JavaScript).to_string(),
            argument: error.argument_in(Spelling::JavaScript),
            status: error.status(),
            path: error.path(),
            offset: error.offset().map(|offset| offset as f64),
            retry_after: error.retry_after_s().map(|seconds| seconds as f64),
            excerpt: error.excerpt(),
        });
        Self(FACTORY.with_borrow(|factory| match factory {
            Some(factory) => {
                factory.call1(&JsValue::UNDEFINED, &fields).unwrap_or_else(|thrown| thrown)
            }
            None => fields,
        }))
    }
}

impl From<Thrown> for JsValue {
    fn from(thrown: Thrown) -> Self {
        thrown.0
    }
}
