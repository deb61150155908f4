/* eval/cuda/counters/table: which hardware counters a profile reads, in one table: the runner asks
 * CUPTI for them by these names, and the worker reads what comes back by the same numbers. Names
 * hold from Turing to Blackwell; one that a chip does not have stays unknown. 9 passes on Hopper.
 */
#pragma once

/* X(number, CUPTI's name) */
/* clang-format off */
#define COUNTERS(X) \
    X(TIME_NS, "gpu__time_duration.sum") \
    X(SM_ACTIVE, "sm__cycles_active.avg") \
    X(SM_ELAPSED, "sm__cycles_elapsed.max") \
    X(DRAM_PCT, "dram__bytes.sum.pct_of_peak_sustained_elapsed") \
    X(DRAM_READ, "dram__bytes_read.sum") \
    X(DRAM_WRITE, "dram__bytes_write.sum") \
    X(L2_PCT, "lts__t_sectors.avg.pct_of_peak_sustained_elapsed") \
    X(L2_READ_SECTORS, "lts__t_sectors_op_read.sum") \
    X(L2_WRITE_SECTORS, "lts__t_sectors_op_write.sum") \
    X(L1_PCT, "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed") \
    X(LOAD_SECTORS, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") \
    X(LOAD_REQUESTS, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum") \
    X(LOAD_HITS, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum") \
    X(STORE_SECTORS, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum") \
    X(STORE_REQUESTS, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum") \
    X(LOCAL_LOAD_SECTORS, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum") \
    X(LOCAL_STORE_SECTORS, "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum") \
    X(SHARED_WAVEFRONTS, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum") \
    X(SHARED_CONFLICTS, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum") \
    X(INSTRUCTIONS, "smsp__inst_executed.sum") \
    X(THREAD_INSTRUCTIONS, "smsp__thread_inst_executed.sum") \
    X(OPS_FMA, "smsp__inst_executed_pipe_fma.sum") \
    X(OPS_ALU, "smsp__inst_executed_pipe_alu.sum") \
    X(OPS_LSU, "smsp__inst_executed_pipe_lsu.sum") \
    X(OPS_XU, "smsp__inst_executed_pipe_xu.sum") \
    X(OPS_FP64, "smsp__inst_executed_pipe_fp64.sum") \
    X(OPS_TENSOR, "smsp__inst_executed_pipe_tensor.sum") \
    X(PIPE_FMA, "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active") \
    X(PIPE_ALU, "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active") \
    X(PIPE_TENSOR, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active") \
    X(PIPE_LSU, "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active") \
    X(PIPE_XU, "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active") \
    X(WARPS_PCT, "sm__warps_active.avg.pct_of_peak_sustained_active") \
    X(ISSUE_PCT, "smsp__issue_active.avg.pct_of_peak_sustained_active") \
    X(ELIGIBLE, "smsp__warps_eligible.avg.per_cycle_active") \
    X(WARP_CYCLES, "smsp__warps_active.sum") \
    X(STALL_LONG_SCOREBOARD, "smsp__warps_issue_stalled_long_scoreboard.sum") \
    X(STALL_SHORT_SCOREBOARD, "smsp__warps_issue_stalled_short_scoreboard.sum") \
    X(STALL_BARRIER, "smsp__warps_issue_stalled_barrier.sum") \
    X(STALL_MIO_THROTTLE, "smsp__warps_issue_stalled_mio_throttle.sum") \
    X(STALL_LG_THROTTLE, "smsp__warps_issue_stalled_lg_throttle.sum") \
    X(STALL_MATH_PIPE, "smsp__warps_issue_stalled_math_pipe_throttle.sum") \
    X(STALL_WAIT, "smsp__warps_issue_stalled_wait.sum") \
    X(STALL_GMMA, "smsp__warps_issue_stalled_gmma.sum") \
    X(STALL_MEMBAR, "smsp__warps_issue_stalled_membar.sum") \
    X(STALL_NO_INSTRUCTION, "smsp__warps_issue_stalled_no_instruction.sum") \
    X(STALL_NOT_SELECTED, "smsp__warps_issue_stalled_not_selected.sum")
/* clang-format on */

enum counter {
#define COUNTER_NUMBER(number, name) COUNTER_##number,
    COUNTERS(COUNTER_NUMBER)
#undef COUNTER_NUMBER
        COUNTER_COUNT
};

extern const char *const counter_names[COUNTER_COUNT];
