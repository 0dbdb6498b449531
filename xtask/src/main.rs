//! `xtask INPUT.wasm OUT_DIR` writes the JavaScript glue and its types for the npm package.
//!
//! It uses `wasm-bindgen --target web` as a library, so that its version can't differ from the version of the crate: both are
//! pinned in the workspace manifest. It turns the glue into a function that makes a copy of the glue for each instance. An
//! instance that has trapped is replaced by a new one, and objects of the old instance must never reach the memory of the new
//! one.

use std::error::Error;
use std::fs;
use std::mem;
use std::path::PathBuf;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(out_dir), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: xtask INPUT.wasm OUT_DIR".into());
    };
    let mut bindgen = Bindgen::new();
    let mut output = bindgen
        .input_path(&input)
        .web(true)?
        .typescript(true)
        // The facade passes the module's bytes, so the glue never has to find a file.
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()?;
    // Only the glue calls methods. Their short names save a hundredth of the library.
    let mut renamed = Vec::new();
    let exports = output.wasm_mut().exports.iter_mut();
    for (number, export) in exports.filter(|it| is_method(&it.name)).enumerate() {
        let short = format!("m{number}");
        renamed.push((mem::replace(&mut export.name, short.clone()), short));
    }
    output.emit(&out_dir)?;
    let name = bindgen.stem()?;
    let script = out_dir.join(format!("{name}.js"));
    let mut glue = fs::read_to_string(&script)?;
    for (long, short) in renamed {
        let call = format!("wasm.{long}(");
        if !glue.contains(&call) {
            return Err(format!("the glue doesn't call {long}").into());
        }
        glue = glue.replace(&call, &format!("wasm.{short}("));
    }
    fs::write(&script, per_instance(&glue)?)?;
    let types = out_dir.join(format!("{name}.d.ts"));
    let declared = fs::read_to_string(&types)?;
    Ok(fs::write(&types, declared + &per_instance_types(name))?)
}

/// Whether an export is a method. The facade uses the names of the other exports.
fn is_method(name: &str) -> bool {
    let is_own = name.starts_with("core") && name.contains('_');
    let is_used = name.ends_with("_new") || ["corecall_attempt", "corecall_close"].contains(&name);
    is_own && !is_used
}

/// The line that begins the part of the glue that starts an instance. The facade does that itself, so this part is left out.
const START: &str = "let wasmModule, wasmInstance, wasm;\n";

/// What the glue does if it gets an object of another class.
const WRONG_CLASS: &str = "throw new Error(`expected instance of ${klass.name}`);";

/// Turns the glue into a function that returns the glue of one instance: its imports, the exported functions and classes, and
/// `use`, which sets the instance to use.
fn per_instance(glue: &str) -> Result<String, Box<dyn Error>> {
    let (glue, _) = glue.split_once(START).ok_or("the glue starts otherwise")?;
    let mut exported = Vec::new();
    let mut views = String::new();
    let mut body = String::new();
    for line in glue.lines() {
        let line = match line.strip_prefix("export ") {
            Some(own) => {
                let name = own.split([' ', '(']).nth(1).ok_or("an export has no name")?;
                exported.push(name);
                own
            }
            None => line,
        };
        if let Some(view) = line.strip_prefix("let cached")
            && let Some(name) = view.strip_suffix(" = null;")
        {
            views += &format!("cached{name} = ");
        }
        // The facade passes only objects of the class of that name, so any other object is of another instance's class.
        body += &line.replace(WRONG_CLASS, "throw lost();");
        body.push('\n');
    }
    if exported.is_empty() || views.is_empty() {
        return Err("the glue has other exports or views than expected".into());
    }
    Ok(format!(
        "export function glue(lost) {{\n{body}
let wasm;
return {{
    imports: __wbg_get_imports(),
    use(exports) {{
        wasm = exports;
        {views}null;
    }},
    {},
}};\n}}\n",
        exported.join(", ")
    ))
}

fn per_instance_types(name: &str) -> String {
    format!(
        "
/** The glue of one instance: whose exports it is to use, and all of the above. */
export interface Glue extends Readonly<Omit<typeof import(\"./{name}.js\"), \"glue\" | \"default\" | \"initSync\">> {{
    readonly imports: WebAssembly.Imports;
    use(exports: object): void;
}}

/** The glue of a new instance. Makes the error about an object of another one. */
export function glue(lost: () => Error): Glue;
"
    )
}
