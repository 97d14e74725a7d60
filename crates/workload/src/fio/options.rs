//! Every option of fio 3.33 (and 3.34's libblkio), in one table; options of later versions are in [`super::newer`].
//! To add an option, add one entry and, if it has a model, one function in [`apply`](super::apply).

use super::apply::*;
use super::settings::Settings;
use super::value::{OptionError, OptionValue};
use super::zones::*;

/// Effect of an option on a simulated drive.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// Simulated: the function stores its value.
    Modelled(fn(&mut Settings, &OptionValue) -> Result<(), OptionError>),
    /// No meaning for a model (affinity, buffer contents, logs, creation of files).
    Nothing,
    /// Would change fio's behaviour, but is not simulated: a run reports this unless the value is one of these (fio's
    /// default, or another value without effect).
    NotSimulated(&'static [&'static str]),
    /// Changes the I/O so much that a run without it would measure something else: refused with the reason, unless
    /// the value is one of these.
    Refused(&'static [&'static str], &'static str),
    /// Known to fio, which refuses it too.
    Withdrawn,
}

/// An option of fio's jobs.
#[derive(Clone, Copy)]
pub(super) struct FioOption {
    /// fio's first name for the option, which its output uses.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Whether the option is valid without a value.
    pub bare: bool,
    /// Engines that have it; empty if all.
    pub engines: &'static [&'static str],
    /// Effect on the simulated drive.
    pub meaning: Meaning,
    /// The first version of fio with this option; `None` for fio 3.33 and earlier.
    pub since: Option<&'static str>,
}

type Apply = fn(&mut Settings, &OptionValue) -> Result<(), OptionError>;

pub(super) const fn modelled(
    name: &'static str,
    aliases: &'static [&'static str],
    apply: Apply,
) -> FioOption {
    entry(name, aliases, Meaning::Modelled(apply))
}

pub(super) const fn nothing(name: &'static str) -> FioOption {
    entry(name, &[], Meaning::Nothing)
}

const fn not_simulated(name: &'static str, neutral: &'static [&'static str]) -> FioOption {
    entry(name, &[], Meaning::NotSimulated(neutral))
}

pub(super) const fn refused(
    name: &'static str,
    neutral: &'static [&'static str],
    why: &'static str,
) -> FioOption {
    entry(name, &[], Meaning::Refused(neutral, why))
}

const fn entry(
    name: &'static str,
    aliases: &'static [&'static str],
    meaning: Meaning,
) -> FioOption {
    FioOption {
        name,
        aliases,
        bare: false,
        engines: &[],
        meaning,
        since: None,
    }
}

impl FioOption {
    pub(super) const fn bare(mut self) -> FioOption {
        self.bare = true;
        self
    }

    pub(super) const fn aliases(mut self, aliases: &'static [&'static str]) -> FioOption {
        self.aliases = aliases;
        self
    }

    pub(super) const fn for_engines(mut self, engines: &'static [&'static str]) -> FioOption {
        self.engines = engines;
        self
    }

    pub(super) const fn since(mut self, version: &'static str) -> FioOption {
        self.since = Some(version);
        self
    }
}

const ZERO: &[&str] = &["0"];
const URING: &[&str] = &["io_uring", "io_uring_cmd"];
const AIO: &[&str] = &["libaio", "io_uring", "io_uring_cmd"];
/// SPDK's engines for fio.
pub(super) const SPDK: &[&str] = &["spdk", "spdk_nvme", "spdk_bdev"];
/// Engines that support metadata and protection information.
const METADATA: &[&str] = &["spdk", "spdk_nvme", "spdk_bdev", "io_uring_cmd", "xnvme"];
const XNVME: &[&str] = &["xnvme"];
const LIBBLKIO: &[&str] = &["libblkio"];
const CPU: &[&str] = &["cpuio"];
const NET: &[&str] = &["net", "netsplice"];
const CEPH: &[&str] = &["rados", "rbd"];
const RPMA: &[&str] = &[
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
];
const HTTP: &[&str] = &["http"];
const HDFS: &[&str] = &["libhdfs"];

#[rustfmt::skip] // One line an option.
pub(super) const OPTIONS: &[FioOption] = &[
    // Job.
    modelled("name", &[], name),
    modelled("description", &[], description),
    modelled("wait_for", &[], wait_for),
    modelled("stonewall", &["wait_for_previous"], stonewall).bare(),
    modelled("new_group", &[], new_group).bare(),
    modelled("numjobs", &[], numjobs),
    modelled("thread", &[], thread).bare(),
    modelled("group_reporting", &[], group_reporting).bare(),
    modelled("startdelay", &[], startdelay),
    modelled("runtime", &["timeout"], runtime),
    modelled("time_based", &[], time_based).bare(),
    modelled("ramp_time", &[], ramp_time),
    modelled("loops", &[], loops),
    not_simulated("exitall", ZERO).bare(),
    nothing("exit_what"),
    nothing("exitall_on_error").bare(),
    not_simulated("flow", ZERO),
    nothing("flow_id"),
    nothing("flow_sleep"),
    nothing("flow_watermark"),
    not_simulated("profile", &[]),
    // Options of fio's profiles (tiobench, act), which fio accepts in any job without effect.
    nothing("threads"),
    nothing("block"),
    nothing("numruns"),
    nothing("dir"),
    nothing("device-names"),
    nothing("load"),
    nothing("test-duration"),
    nothing("threads-per-queue"),
    nothing("read-req-num-512-blocks"),
    nothing("large-block-op-kbytes"),
    nothing("prep"),
    not_simulated("stats", &["1"]),

    // Files and offsets.
    modelled("filename", &[], filename),
    modelled("directory", &[], directory),
    nothing("uri"),
    modelled("filesize", &[], filesize),
    modelled("size", &[], size),
    modelled("io_size", &["io_limit"], io_size),
    modelled("offset", &["fileoffset"], offset),
    modelled("offset_increment", &[], offset_increment),
    not_simulated("offset_align", ZERO),
    modelled("number_ios", &[], number_ios),
    not_simulated("fill_device", ZERO).aliases(&["fill_fs"]),
    not_simulated("file_append", ZERO),
    not_simulated("nrfiles", &["1"]).aliases(&["nr_files"]),
    nothing("openfiles"),
    nothing("file_service_type"),
    nothing("filename_format"),
    nothing("unique_filename"),
    nothing("lockfile"),
    nothing("opendir"),
    nothing("fallocate"),
    modelled("fadvise_hint", &[], fadvise_hint),
    modelled("overwrite", &[], overwrite),
    nothing("allow_file_create"),
    nothing("allow_mounted_write"),
    nothing("create_serialize"),
    nothing("create_fsync"),
    nothing("create_on_open"),
    not_simulated("create_only", ZERO),
    nothing("pre_read"),
    nothing("unlink"),
    nothing("unlink_each_loop"),
    modelled("invalidate", &[], invalidate),
    nothing("ioscheduler"),
    modelled("zonemode", &[], zonemode),
    modelled("zonesize", &[], zonesize),
    modelled("zonerange", &[], zonerange),
    modelled("zoneskip", &[], zoneskip),
    modelled("zonecapacity", &[], zonecapacity),
    modelled("read_beyond_wp", &[], read_beyond_wp),
    modelled("max_open_zones", &[], max_open_zones),
    modelled("job_max_open_zones", &[], job_max_open_zones),
    nothing("ignore_zone_limits"),
    modelled("zone_reset_threshold", &[], zone_reset_threshold),
    modelled("zone_reset_frequency", &[], zone_reset_frequency),

    // Type of I/O.
    modelled("rw", &["readwrite"], rw),
    modelled("rw_sequencer", &[], rw_sequencer),
    modelled("rwmixread", &[], rwmixread),
    modelled("rwmixwrite", &[], rwmixwrite),
    entry("rwmixcycle", &[], Meaning::Withdrawn),
    modelled("bs", &["blocksize"], bs),
    modelled("ba", &["blockalign"], ba),
    modelled("bsrange", &["blocksize_range"], bsrange),
    modelled("bssplit", &[], bssplit),
    modelled("bs_unaligned", &["blocksize_unaligned"], bs_unaligned).bare(),
    modelled("bs_is_seq_rand", &[], bs_is_seq_rand),
    modelled("random_distribution", &[], random_distribution),
    modelled("percentage_random", &[], percentage_random),
    entry("percentage_sequential", &[], Meaning::Withdrawn),
    modelled("norandommap", &[], norandommap).bare(),
    modelled("randseed", &[], randseed),
    nothing("softrandommap"),
    nothing("randrepeat"),
    nothing("allrandrepeat"),
    nothing("random_generator"),
    not_simulated("trim_percentage", ZERO),
    nothing("trim_verify_zero"),
    not_simulated("trim_backlog", ZERO),
    nothing("trim_backlog_batch"),

    // Engine, depth, durability.
    modelled("ioengine", &[], ioengine),
    modelled("iodepth", &[], iodepth),
    modelled("iodepth_batch", &["iodepth_batch_submit"], iodepth_batch),
    modelled("iodepth_batch_complete_min", &["iodepth_batch_complete"], iodepth_batch_complete_min),
    modelled("iodepth_batch_complete_max", &[], iodepth_batch_complete_max),
    modelled("iodepth_low", &[], iodepth_low),
    not_simulated("io_submit_mode", &["inline"]),
    not_simulated("serialize_overlap", ZERO),
    modelled("direct", &[], direct),
    modelled("buffered", &[], buffered),
    modelled("atomic", &[], atomic),
    modelled("fsync", &[], fsync),
    modelled("fdatasync", &[], fdatasync),
    modelled("end_fsync", &[], end_fsync),
    modelled("fsync_on_close", &[], fsync_on_close),
    modelled("sync", &[], sync),
    not_simulated("write_barrier", ZERO),
    not_simulated("sync_file_range", &[]),
    nothing("write_hint"),
    modelled("hipri", &[], hipri).bare().for_engines(&["io_uring", "io_uring_cmd", "pvsync2", "sg", "xnvme", "libblkio"]),
    not_simulated("hipri_percentage", &["100"]).for_engines(&["pvsync2"]),
    modelled("sqthread_poll", &[], sqthread_poll).bare().for_engines(URING),
    nothing("sqthread_poll_cpu").for_engines(URING),
    not_simulated("fixedbufs", ZERO).bare().for_engines(URING),
    not_simulated("registerfiles", ZERO).bare().for_engines(URING),
    nothing("nonvectored").for_engines(URING),
    not_simulated("force_async", ZERO).for_engines(URING),
    nothing("cmd_type").for_engines(&["io_uring_cmd"]),
    nothing("uncached").for_engines(&["io_uring", "io_uring_cmd", "pvsync2"]),
    nothing("nowait").bare().for_engines(&["libaio", "io_uring", "io_uring_cmd", "pvsync2"]),
    nothing("userspace_reap").bare().for_engines(&["libaio"]),
    not_simulated("cmdprio_percentage", ZERO).for_engines(AIO),
    nothing("cmdprio_class").for_engines(AIO),
    nothing("cmdprio").for_engines(AIO),
    not_simulated("cmdprio_bssplit", &[]).for_engines(AIO),
    not_simulated("readfua", ZERO).for_engines(&["sg", "io_uring_cmd"]),
    not_simulated("writefua", ZERO).for_engines(&["sg", "io_uring_cmd"]),
    not_simulated("sg_write_mode", &["write"]).for_engines(&["sg"]),
    nothing("stream_id").for_engines(&["sg"]),
    nothing("mem_size_mb").for_engines(SPDK),
    nothing("shm_id").for_engines(SPDK),
    nothing("enable_sgl").for_engines(SPDK),
    nothing("hostnqn").for_engines(SPDK),
    nothing("pi_act").for_engines(METADATA),
    nothing("pi_chk").for_engines(METADATA),
    nothing("md_per_io_size").for_engines(METADATA),
    nothing("apptag").for_engines(METADATA),
    nothing("apptag_mask").for_engines(METADATA),
    nothing("digest_enable").for_engines(SPDK),
    nothing("enable_vmd").for_engines(SPDK),
    not_simulated("xnvme_be", &["linux"]).for_engines(XNVME),
    not_simulated("xnvme_async", &["io_uring", "io_uring_cmd"]).for_engines(XNVME),
    nothing("xnvme_sync").for_engines(XNVME),
    nothing("xnvme_admin").for_engines(XNVME),
    nothing("xnvme_dev_nsid").for_engines(XNVME),
    nothing("xnvme_dev_subnqn").for_engines(XNVME),
    nothing("xnvme_mem").for_engines(XNVME),
    nothing("xnvme_iovec").bare().for_engines(XNVME),
    not_simulated("libblkio_driver", &["io_uring", "nvme-io_uring"]).for_engines(LIBBLKIO),
    nothing("libblkio_path").for_engines(LIBBLKIO),
    nothing("libblkio_pre_connect_props").for_engines(LIBBLKIO),
    nothing("libblkio_pre_start_props").for_engines(LIBBLKIO),
    nothing("libblkio_num_entries").for_engines(LIBBLKIO),
    nothing("libblkio_queue_size").for_engines(LIBBLKIO),
    nothing("libblkio_vectored").bare().for_engines(LIBBLKIO),
    nothing("libblkio_write_zeroes_on_trim").bare().for_engines(LIBBLKIO),
    nothing("libblkio_wait_mode").for_engines(LIBBLKIO),
    nothing("libblkio_force_enable_completion_eventfd").bare().for_engines(LIBBLKIO),

    // Options of engines that have no model.
    nothing("cpuload").for_engines(CPU),
    nothing("cpuchunks").for_engines(CPU),
    nothing("cpumode").for_engines(CPU),
    nothing("exit_on_io_done").for_engines(CPU),
    nothing("thp").for_engines(&["mmap"]),
    nothing("hostname").for_engines(&["net", "netsplice", "rdma", "libhdfs"]),
    nothing("port").for_engines(&["net", "netsplice", "rdma", "libhdfs", "librpma_apm_client", "librpma_apm_server", "librpma_gpspm_client", "librpma_gpspm_server"]),
    nothing("protocol").aliases(&["proto"]).for_engines(NET),
    nothing("nodelay").for_engines(NET),
    nothing("listen").bare().for_engines(NET),
    nothing("pingpong").bare().for_engines(NET),
    nothing("interface").for_engines(NET),
    nothing("ttl").for_engines(NET),
    nothing("window_size").for_engines(NET),
    nothing("mss").for_engines(NET),
    nothing("bindname").for_engines(&["rdma"]),
    nothing("verb").for_engines(&["rdma"]),
    nothing("serverip").for_engines(RPMA),
    nothing("direct_write_to_pmem").for_engines(RPMA),
    nothing("busy_wait_polling").for_engines(RPMA),
    nothing("stat_type").for_engines(&["filestat", "dirstat"]),
    nothing("program").for_engines(&["exec"]),
    nothing("arguments").for_engines(&["exec"]),
    nothing("grace_time").for_engines(&["exec"]),
    nothing("std_redirect").for_engines(&["exec"]),
    nothing("donorname").for_engines(&["e4defrag"]),
    nothing("inplace").for_engines(&["e4defrag"]),
    nothing("volume").for_engines(&["gfapi", "gfapi_async"]),
    nothing("brick").for_engines(&["gfapi", "gfapi_async"]),
    nothing("single-instance").for_engines(&["gfapi", "gfapi_async"]),
    nothing("skip_bad").for_engines(&["mtd"]),
    nothing("clustername").for_engines(CEPH),
    nothing("rbdname").for_engines(&["rbd"]),
    nothing("pool").for_engines(&["rados", "rbd", "dfs"]),
    nothing("clientname").for_engines(CEPH),
    nothing("conf").for_engines(&["rados"]),
    nothing("busy_poll").for_engines(CEPH),
    nothing("touch_objects").for_engines(&["rados"]),
    nothing("https").for_engines(HTTP),
    nothing("http_host").for_engines(HTTP),
    nothing("http_user").for_engines(HTTP),
    nothing("http_pass").for_engines(HTTP),
    nothing("http_s3_key").for_engines(HTTP),
    nothing("http_s3_keyid").for_engines(HTTP),
    nothing("http_swift_auth_token").for_engines(HTTP),
    nothing("http_s3_region").for_engines(HTTP),
    nothing("http_s3_sse_customer_key").for_engines(HTTP),
    nothing("http_s3_sse_customer_algorithm").for_engines(HTTP),
    nothing("http_s3_storage_class").for_engines(HTTP),
    nothing("http_mode").for_engines(HTTP),
    nothing("http_verbose").for_engines(HTTP),
    nothing("nfs_url").for_engines(&["nfs"]),
    nothing("cont").for_engines(&["dfs"]),
    nothing("object_class").for_engines(&["dfs"]),
    nothing("svcl").for_engines(&["dfs"]),
    nothing("chunk_size").aliases(&["chunck_size"]).for_engines(&["dfs", "libhdfs"]),
    nothing("namenode").for_engines(HDFS),
    nothing("hdfsdirectory").for_engines(HDFS),
    nothing("single_instance").for_engines(HDFS),
    nothing("hdfs_use_direct").bare().for_engines(HDFS),
    nothing("initiator").for_engines(&["libiscsi"]),
    nothing("gpu_dev_ids").for_engines(&["libcufile", "libhipfile"]),
    nothing("cuda_io").for_engines(&["libcufile"]),

    // Rates and pauses.
    modelled("rate", &[], rate),
    modelled("rate_iops", &[], rate_iops),
    not_simulated("rate_min", ZERO).aliases(&["ratemin"]),
    not_simulated("rate_iops_min", ZERO),
    modelled("rate_process", &[], rate_process),
    nothing("rate_cycle").aliases(&["ratecycle"]),
    not_simulated("rate_ignore_thinktime", ZERO),
    modelled("thinktime", &[], thinktime),
    modelled("thinktime_spin", &[], thinktime_spin),
    modelled("thinktime_blocks", &[], thinktime_blocks),
    modelled("thinktime_blocks_type", &[], thinktime_blocks_type),
    modelled("thinktime_iotime", &[], thinktime_iotime),
    modelled("latency_target", &[], latency_target),
    modelled("latency_window", &[], latency_window),
    modelled("latency_percentile", &[], latency_percentile),
    modelled("latency_run", &[], latency_run),
    not_simulated("max_latency", ZERO),
    modelled("steadystate", &["ss"], steadystate),
    modelled("steadystate_duration", &["ss_dur"], steadystate_duration),
    modelled("steadystate_ramp_time", &["ss_ramp"], steadystate_ramp_time),

    // Recorded I/O.
    modelled("read_iolog", &[], read_iolog),
    modelled("replay_no_stall", &[], replay_no_stall),
    modelled("replay_time_scale", &[], replay_time_scale),
    nothing("read_iolog_chunked"),
    nothing("replay_redirect"),
    not_simulated("replay_scale", &["0", "1"]),
    not_simulated("replay_align", ZERO),
    not_simulated("replay_skip", &[]),
    not_simulated("merge_blktrace_file", &[]),
    nothing("merge_blktrace_scalars"),
    nothing("merge_blktrace_iters"),
    nothing("write_iolog"),

    // Units and reports.
    modelled("kb_base", &[], kb_base),
    modelled("unit_base", &[], unit_base),
    modelled("percentile_list", &[], percentile_list),
    modelled("clat_percentiles", &[], clat_percentiles),
    modelled("lat_percentiles", &[], lat_percentiles),
    modelled("slat_percentiles", &[], slat_percentiles),
    modelled("significant_figures", &[], significant_figures),
    modelled("unified_rw_reporting", &[], unified_rw_reporting),
    modelled("disable_lat", &[], disable_lat),
    modelled("disable_clat", &[], disable_clat),
    modelled("disable_slat", &[], disable_slat),
    modelled("disable_bw_measurement", &["disable_bw"], disable_bw),
    modelled("gtod_reduce", &[], gtod_reduce),
    nothing("disk_util"),
    nothing("gtod_cpu"),
    nothing("clocksource"),
    nothing("bwavgtime"),
    nothing("iopsavgtime"),
    nothing("block_error_percentiles"),
    nothing("continue_on_error"),
    nothing("ignore_error"),
    nothing("error_dump"),
    nothing("per_job_logs"),
    nothing("write_bw_log").bare(),
    nothing("write_lat_log").bare(),
    nothing("write_iops_log").bare(),
    nothing("write_hist_log").bare(),
    nothing("log_entries"),
    nothing("log_avg_msec"),
    nothing("log_hist_msec"),
    nothing("log_hist_coarseness"),
    nothing("log_max_value"),
    nothing("log_offset"),
    nothing("log_prio"),
    nothing("log_compression"),
    nothing("log_compression_cpus"),
    nothing("log_store_compressed"),
    nothing("log_unix_epoch"),
    nothing("log_alternate_epoch"),
    nothing("log_alternate_epoch_clock_id"),

    // Processor, memory, buffers, verification, environment.
    nothing("cpumask"),
    nothing("cpus_allowed"),
    nothing("cpus_allowed_policy"),
    modelled("numa_cpu_nodes", &[], numa_cpu_nodes),
    nothing("numa_mem_policy"),
    nothing("gpu_dev_id"),
    nothing("nice"),
    nothing("prio"),
    nothing("prioclass"),
    nothing("uid"),
    nothing("gid"),
    nothing("cgroup"),
    nothing("cgroup_weight"),
    nothing("cgroup_nodelete"),
    nothing("exec_prerun"),
    nothing("exec_postrun"),
    nothing("mem").aliases(&["iomem"]),
    nothing("iomem_align").aliases(&["mem_align"]),
    nothing("hugepage-size"),
    nothing("lockmem"),
    nothing("zero_buffers").bare(),
    nothing("refill_buffers").bare(),
    nothing("scramble_buffers"),
    nothing("buffer_pattern"),
    nothing("buffer_compress_percentage"),
    nothing("buffer_compress_chunk"),
    nothing("dedupe_percentage"),
    nothing("dedupe_mode"),
    nothing("dedupe_global"),
    nothing("dedupe_working_set_percentage"),
    not_simulated("verify", ZERO),
    not_simulated("verify_only", ZERO).bare(),
    nothing("do_verify"),
    nothing("verifysort"),
    nothing("verifysort_nr"),
    nothing("verify_interval"),
    nothing("verify_offset"),
    nothing("verify_pattern"),
    nothing("verify_fatal"),
    nothing("verify_dump"),
    nothing("verify_async"),
    nothing("verify_async_cpus"),
    nothing("verify_backlog"),
    nothing("verify_backlog_batch"),
    nothing("verify_state_load"),
    nothing("verify_state_save"),
    nothing("experimental_verify"),
];
