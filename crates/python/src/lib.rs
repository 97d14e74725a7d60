//! drivelab in Python: the compiled part of the package `drivelab`, whose interface is `python/drivelab/__init__.py`.
//!
//! It contains no models. It reads arguments, calls the same functions as the subcommands of the command line, and
//! returns texts and tables. Not supported: serving drives. Long work does not hold the interpreter lock, can be
//! interrupted, and never passes a panic to Python ([`work`]).

mod act;
mod ask;
mod decide;
mod drive;
mod fit;
mod jobs;
mod judge;
mod review;
mod run;
mod sweep;
mod table;
mod work;

use pyo3::prelude::*;

/// The compiled part of `drivelab`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", version::VERSION)?;
    module.add("ACT_HOST", study::act::HOST)?;
    module.add("TYPICAL_HOST", catalogue::TYPICAL_HOST)?;
    module.add("Error", py.get_type::<work::Error>())?;
    module.add("InputError", py.get_type::<work::InputError>())?;
    module.add("Defect", py.get_type::<work::Defect>())?;
    module.add_class::<drive::Drive>()?;
    module.add_class::<jobs::Jobs>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<run::Run>()?;
    module.add_class::<run::Replay>()?;
    module.add_class::<decide::Answer>()?;
    module.add_class::<act::Act>()?;
    module.add_class::<fit::Fit>()?;
    module.add_class::<review::Review>()?;
    module.add_function(wrap_pyfunction!(drive::names, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::replay, module)?)?;
    module.add_function(wrap_pyfunction!(act::tested, module)?)?;
    module.add_function(wrap_pyfunction!(ask::defaults, module)?)?;
    module.add_function(wrap_pyfunction!(ask::answer, module)?)?;
    module.add_function(wrap_pyfunction!(ask::repeated, module)?)?;
    module.add_function(wrap_pyfunction!(decide::chosen, module)?)?;
    module.add_function(wrap_pyfunction!(decide::placed, module)?)?;
    module.add_class::<judge::Proof>()?;
    module.add_function(wrap_pyfunction!(judge::explained, module)?)?;
    module.add_function(wrap_pyfunction!(judge::sized, module)?)?;
    module.add_function(wrap_pyfunction!(judge::proved, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fitted, module)?)?;
    module.add_function(wrap_pyfunction!(review::reviewed, module)?)?;
    module.add_function(wrap_pyfunction!(work::broken_off, module)?)?;
    Ok(())
}
