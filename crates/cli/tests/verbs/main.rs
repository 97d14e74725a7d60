//! The verbs that run to their end, from outside: output, files, messages and exit codes.

mod act;
mod answers;
mod csv;
mod decide;
mod drives;
mod explain;
mod faults;
mod fio;
mod fio_messages;
mod fit;
mod help;
mod lab;
mod loop_device;
mod measure;
mod outputs;
mod pools;
mod replay;
mod reproduce;
mod review;
mod rig;
mod run;
mod settings;
mod size;
mod stop;
mod sweep;
mod what_if;
