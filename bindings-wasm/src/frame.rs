//! What tables, series and comparisons have in common: their columns, and which rows rank highest.

use js_sys::{Array, BigUint64Array, Float64Array, Object, Reflect, Uint32Array};
use tallyfold::{Column, Frame, Presence, TopOptions, Values};
use wasm_bindgen::JsValue;

use crate::arguments::options;
use crate::error::Result;
use crate::plain::plain;

/// Generates the methods of a class that wraps a frame.
macro_rules! frame {
    ($Class:ident, $js_class:ident) => {
        #[wasm_bindgen(js_class = $js_class)]
        impl $Class {
            /// The names of the dimensions.
            pub fn dimensions(&self) -> Returned {
                Ok(plain(&tallyfold::Frame::dimensions(&self.0).names()))
            }

            /// The name of the metric, if it is known.
            pub fn metric(&self) -> Option<String> {
                tallyfold::Frame::metric(&self.0).map(|metric| metric.to_string())
            }

            /// The number of rows.
            pub fn length(&self) -> usize {
                tallyfold::Frame::len(&self.0)
            }

            /// The positions of the rows that rank highest.
            pub fn top(&self, given: &JsValue) -> Result<Vec<u32>, Thrown> {
                crate::frame::top(&self.0, given)
            }

            /// All columns by name, with the given rows; by default, with all rows.
            pub fn columns(&self, rows: Option<Vec<u32>>) -> Returned {
                Ok(crate::frame::columns(&self.0, rows))
            }

            /// The three quotients by name, for the given rows; by default, for all rows.
            pub fn fractions(&self, rows: Option<Vec<u32>>) -> Returned {
                Ok(crate::frame::fractions(&self.0, rows))
            }

            /// The frame as JSON text.
            #[wasm_bindgen(js_name = toJson)]
            pub fn to_json(&self) -> String {
                tallyfold::Frame::to_json(&self.0)
            }
        }
    };
}
pub(crate) use frame;

/// The positions of the rows that rank highest.
pub(crate) fn top(frame: &dyn Frame, given: &JsValue) -> Result<Vec<u32>> {
    let TopOptions { n, by, .. } = options("options", given, &[])?;
    Ok(frame.top(n, by).into_iter().map(|row| row as u32).collect())
}

/// The columns by name. If there are two sides, each side is an object of its own. All columns are copies, so that they stay
/// valid when the wasm memory grows.
pub(crate) fn columns(frame: &dyn Frame, rows: Option<Vec<u32>>) -> JsValue {
    let columns = Object::new();
    for column in frame.columns() {
        let Column { side, name, values } = column;
        let value = match &rows {
            None => whole(values),
            Some(rows) => part(values, rows),
        };
        let parent = side.map_or_else(|| columns.clone(), |side| child(&columns, side));
        set(&parent, name, &value);
    }
    columns.into()
}

/// The quotients of rows by name. NaN means that there is no quotient, because typed arrays can't contain `null`.
pub(crate) fn fractions(frame: &dyn Frame, rows: Option<Vec<u32>>) -> JsValue {
    let rows = rows.unwrap_or_else(|| (0..frame.len() as u32).collect());
    let mut columns = [(); 3].map(|()| Vec::with_capacity(rows.len()));
    for row in rows {
        for (column, value) in columns.iter_mut().zip(frame.fractions(row as usize)) {
            column.push(value.unwrap_or(f64::NAN));
        }
    }
    let fractions = Object::new();
    for (name, column) in frame.fraction_names().into_iter().zip(&columns) {
        set(&fractions, name, &Float64Array::from(column.as_slice()));
    }
    fractions.into()
}

/// A column of all rows.
fn whole(values: Values<'_>) -> JsValue {
    match values {
        Values::Texts { dictionary, ids } => coded(texts(dictionary.values()), ids),
        Values::Windows { windows, ids } => coded(plain(windows), ids),
        Values::Presences(presences) => coded(plain(Presence::ALL), &presence_ids(presences)),
        Values::Counts(counts) => BigUint64Array::from(counts).into(),
    }
}

/// A column of some rows, whose dictionary has a value for each of them.
fn part(values: Values<'_>, rows: &[u32]) -> JsValue {
    let places: Vec<u32> = (0..rows.len() as u32).collect();
    let rows = rows.iter().map(|row| *row as usize);
    match values {
        Values::Texts { dictionary, ids } => {
            coded(texts(rows.map(|row| dictionary.value(ids[row]))), &places)
        }
        Values::Windows { windows, ids } => {
            let windows: Vec<_> = rows.map(|row| windows[ids[row] as usize]).collect();
            coded(plain(&windows), &places)
        }
        Values::Presences(presences) => {
            let presences: Vec<_> = rows.map(|row| presences[row]).collect();
            coded(plain(&presences), &places)
        }
        Values::Counts(counts) => {
            let counts: Vec<_> = rows.map(|row| counts[row]).collect();
            BigUint64Array::from(counts.as_slice()).into()
        }
    }
}

/// A column of values that repeat: the distinct values, and the position of each row's value.
fn coded(dictionary: JsValue, ids: &[u32]) -> JsValue {
    let column = Object::new();
    set(&column, "dictionary", &dictionary);
    set(&column, "ids", &Uint32Array::from(ids));
    column.into()
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> JsValue {
    values.map(JsValue::from_str).collect::<Array>().into()
}

fn presence_ids(presences: &[Presence]) -> Vec<u32> {
    presences.iter().map(|presence| *presence as u32).collect()
}

/// Returns the object under a name. Makes it if it does not exist.
fn child(parent: &Object, name: &str) -> Object {
    let found = Reflect::get(parent, &name.into()).unwrap_or_default();
    if found.is_object() {
        return found.into();
    }
    let made = Object::new();
    set(parent, name, &made);
    made
}

fn set(object: &Object, name: &str, value: &JsValue) {
    // A new object accepts every property.
    _ = Reflect::set(object, &name.into(), value);
}
