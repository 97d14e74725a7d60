//! Options of fio 3.34 to 3.42, and of fio's repository after 3.42, that fio 3.33 does not have.
//!
//! Sources: `options.c`, the engines and HOWTO.rst of each version. Data placement (FDP, streams) and data
//! verification have no meaning for a model without data. An option that changes the I/O and has no model is refused
//! with its name and version.

use super::apply::*;
use super::options::{FioOption, SPDK, modelled, nothing, refused};
use super::zones::*;

const PASSTHROUGH: &[&str] = &["io_uring_cmd"];
const ASYNCHRONOUS: &[&str] = &["libaio", "io_uring", "io_uring_cmd"];
const HTTP: &[&str] = &["http"];

#[rustfmt::skip] // One line an option.
pub(super) const NEWER: &[FioOption] = &[
    // Data placement.
    nothing("fdp").since("3.34"),
    nothing("plids").aliases(&["fdp_pli"]).since("3.34"),
    nothing("plid_select").aliases(&["fdp_pli_select"]).since("3.36"),
    nothing("dataplacement").aliases(&["data_placement"]).since("3.38"),
    nothing("dp_scheme").since("3.38"),
    nothing("cmdprio_hint").for_engines(ASYNCHRONOUS).since("3.36"),
    nothing("priohint").since("3.36"),

    // Logs, clocks, processes.
    nothing("job_start_clock_id").since("3.36"),
    nothing("log_window_value").since("3.37"),
    nothing("log_issue_time").since("3.38"),
    nothing("thinkcycles").since("3.37"),
    nothing("filetype").since("3.41"),
    nothing("comm").since("3.42"),
    nothing("no_completion_thread").for_engines(&["windowsaio"]).since("3.34"),
    nothing("libaio_vectored").bare().for_engines(&["libaio"]).since("3.39"),

    // Data verification.
    nothing("verify_write_sequence").since("3.38"),
    nothing("verify_header_seed").since("3.40"),
    nothing("verify_pattern_interval").since("3.40"),
    nothing("verify_policy").since("3.43"),
    nothing("verify_mode").for_engines(PASSTHROUGH).since("3.38"),
    nothing("verify_bytchk").for_engines(PASSTHROUGH).since("3.43"),
    nothing("deac").for_engines(PASSTHROUGH).since("3.39"),
    nothing("cdb_len").for_engines(PASSTHROUGH).since("3.43"),

    // Zones, and engines without a model.
    nothing("recover_zbd_write_error").since("3.40"),
    nothing("write_zone_remainder").aliases(&["write_zone_remainders"]).since("3.42"),
    nothing("http_object_mode").for_engines(HTTP).since("3.41"),
    nothing("http_s3_security_token").for_engines(HTTP).since("3.41"),
    nothing("rbd_encryption_format").for_engines(&["rbd"]).since("3.42"),
    nothing("rbd_encryption_passphrase").for_engines(&["rbd"]).since("3.42"),
    nothing("rocm_io").for_engines(&["libhipfile"]).since("3.43"),

    // Options of SPDK's own engines.
    nothing("spdk_conf").for_engines(&["spdk_bdev"]),
    nothing("spdk_json_conf").for_engines(&["spdk_bdev"]),
    nothing("spdk_mem").for_engines(&["spdk_bdev"]),
    nothing("spdk_single_seg").bare().for_engines(&["spdk_bdev"]),
    nothing("spdk_rpc_listen_addr").for_engines(&["spdk_bdev"]),
    nothing("log_flags").for_engines(SPDK),
    nothing("env_context").for_engines(SPDK),
    nothing("initial_zone_reset").for_engines(SPDK),
    nothing("zone_append").for_engines(SPDK),
    nothing("print_qid_mappings").for_engines(SPDK),
    nothing("disable_pcie_sgl_merge").for_engines(SPDK),

    // Options that change the I/O.
    modelled("steadystate_check_interval", &["ss_interval"], steadystate_check_interval).since("3.35"),
    modelled("end_syncfs", &[], end_fsync).since("3.42"),
    modelled("num_range", &[], num_range).for_engines(PASSTHROUGH).since("3.37"),
    refused("ramp_size", &["0"], "counting begins after a time (ramp_time), not after an amount of I/O").since("3.42"),
    modelled("write_mode", &[], write_mode).for_engines(PASSTHROUGH).since("3.38"),
    refused("read_mode", &["read"], "reads here are reads").for_engines(PASSTHROUGH).since("3.43"),
    refused("sprandom", &["0"], "--state steady begins with a drive in the state that it prepares").since("3.41"),
    nothing("spr_num_regions").since("3.41"),
    nothing("spr_op").since("3.41"),
    nothing("spr_cs").since("3.42"),
    refused("random_sequence_stride", &["0"], "random_distribution=sequence has no model").since("3.43"),
];
