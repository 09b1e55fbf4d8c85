"""Devices, precision, compilation, measuring, checkpoints, and the host loop."""

from .._status import RunError as RunError, Status as Status, raise_for as raise_for
from ._accumulate import accumulate as accumulate
from ._benchmark import Benchmark as Benchmark, benchmark as benchmark
from ._checkpoint_file import (
    Checkpoint as Checkpoint,
    CheckpointError as CheckpointError,
)
from ._checkpoint_store import (
    CheckpointWarning as CheckpointWarning,
    FingerprintError as FingerprintError,
    checkpoint_steps as checkpoint_steps,
    latest_step as latest_step,
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)
from ._checkpointing import Checkpointing as Checkpointing
from ._compile_ahead import compile_ahead as compile_ahead
from ._compile_cache import (
    CacheFolderError as CacheFolderError,
    enable_compile_cache as enable_compile_cache,
)
from ._compile_quickly import compile_quickly as compile_quickly
from ._drive import (
    ChunkInfo as ChunkInfo,
    DriveResult as DriveResult,
    drive as drive,
)
from ._export import (
    Exported as Exported,
    ExportError as ExportError,
    export as export,
    load_exported as load_exported,
)
from ._fingerprint import Fingerprint as Fingerprint, fingerprint as fingerprint
from ._initialize import (
    COORDINATOR as COORDINATOR,
    PROCESS as PROCESS,
    PROCESSES as PROCESSES,
    Processes as Processes,
    ProcessesError as ProcessesError,
    check_same as check_same,
    initialize as initialize,
)
from ._live_arrays import (
    ArrayGroup as ArrayGroup,
    LiveArrays as LiveArrays,
    live_arrays as live_arrays,
)
from ._memory import (
    AvailableMemory as AvailableMemory,
    MemoryLimitError as MemoryLimitError,
    MemoryUse as MemoryUse,
    available_memory as available_memory,
    check_memory as check_memory,
    memory as memory,
)
from ._mesh import (
    DeviceInfo as DeviceInfo,
    best_device as best_device,
    default_platform as default_platform,
    devices as devices,
    mesh as mesh,
)
from ._pipeline import pipeline as pipeline
from ._placement import (
    place as place,
    propose as propose,
    round_up as round_up,
    shardings as shardings,
)
from ._precision import (
    Precision as Precision,
    PrecisionError as PrecisionError,
    cast_floating as cast_floating,
    require_x64 as require_x64,
)
from ._precision_error import (
    PrecisionDeviation as PrecisionDeviation,
    precision_error as precision_error,
)
from ._profile import profile as profile
from ._profile_summary import (
    ProfileRow as ProfileRow,
    ProfileSummary as ProfileSummary,
    profile_summary as profile_summary,
)
from ._progress import Progress as Progress
from ._recompile import (
    CompileCount as CompileCount,
    RecompileError as RecompileError,
    count_compiles as count_compiles,
    no_recompile as no_recompile,
)
from ._remat import (
    RematCost as RematCost,
    explain_remat as explain_remat,
    remat as remat,
)
from ._scaling import (
    Link as Link,
    Machine as Machine,
    Scaling as Scaling,
    ScalingRow as ScalingRow,
    StepCost as StepCost,
    measure_link as measure_link,
    predict_scaling as predict_scaling,
    step_seconds as step_seconds,
)
from ._state_arrays import (
    array_places as array_places,
    pack_state as pack_state,
    unpack_state as unpack_state,
)
from ._together import anywhere as anywhere
from ._watch import (
    all_finite as all_finite,
    bounded as bounded,
    locate_fault as locate_fault,
)
from ._watched import watched as watched
from ._writer_lock import (
    CheckpointLockError as CheckpointLockError,
    writer_lock as writer_lock,
)
