//! The one place where an error crosses into JavaScript.

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

/// What an exported function returns that makes an object. It never fails, but as a result it has three values in WebAssembly.
/// V8 (Node 20) inlines calls of functions with at most one. If such a call makes an object that optimized code did not expect,
/// such as one with a fraction in the place of a whole number, V8 ends the process.
pub(crate) type Returned<T = JsValue> = Result<T>;

/// An error as JavaScript sees it.
pub struct Thrown(JsValue);

impl Thrown {
    /// An argument, by its name in JavaScript, of a type that the core can't be handed.
    pub(crate) fn refused(argument: &str, want: &str) -> Self {
        Error::argument(
            Name::of_caller(argument),
            Code::InvalidArgument,
            want.to_owned(),
        )
        .into()
    }

    /// An argument without which there is nothing to hand to the core.
    pub(crate) fn missing(argument: &str) -> Self {
        Error::argument(Name::of_caller(argument), Code::MissingArgument, "required").into()
    }

    /// Whatever the caller's own code threw while it gave an argument.
    pub(crate) fn foreign(thrown: JsValue) -> Self {
        Self(thrown)
    }
}

/// What an error is made of in JavaScript.
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
    /// Below 2^53 too.
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
        Self(FACTORY.with_borrow(|factory| {
            match factory {
                Some(factory) => factory
                    .call1(&JsValue::UNDEFINED, &fields)
                    .unwrap_or_else(|thrown| thrown),
                None => fields,
            }
        }))
    }
}

impl From<Thrown> for JsValue {
    fn from(thrown: Thrown) -> Self {
        thrown.0
    }
}
