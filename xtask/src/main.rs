//! `xtask INPUT.wasm OUT_DIR` writes the JavaScript glue and its types for the npm package.
//!
//! It is `wasm-bindgen --target web` as a library, so that its version cannot differ from the
//! crate's: both are pinned in one place, the workspace manifest.

use std::error::Error;
use std::path::PathBuf;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(out_dir), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: xtask INPUT.wasm OUT_DIR".into());
    };
    Bindgen::new()
        .input_path(&input)
        .web(true)?
        .typescript(true)
        // The facade hands over the module's bytes, so no host ever has to find a file.
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(&out_dir)?;
    Ok(())
}
