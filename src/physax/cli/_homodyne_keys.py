"""Keys of homodyne's YAML files, and what becomes of each."""

from typing import NamedTuple


class Dropped(NamedTuple):
    """A key, or all below it, without counterpart.

    Attributes:
        why: In a few words.
    """

    why: str


# Handled one by one by the converter.
USED = (
    "analysis_mode",
    "metadata.analysis_mode",
    "analyzer_parameters.dt",
    "analyzer_parameters.start_frame",
    "analyzer_parameters.end_frame",
    "analyzer_parameters.scattering.wavevector_q",
    "analyzer_parameters.geometry.stator_rotor_gap",
    "experimental_data.file_path",
    "experimental_data.data_folder_path",
    "experimental_data.data_file_name",
    "phi_filtering.enabled",
    "phi_filtering.target_ranges",
    "initial_parameters.parameter_names",
    "initial_parameters.values",
    "initial_parameters.active_parameters",
    "initial_parameters.fixed_parameters",
    "parameter_space.bounds",
    "optimization.method",
    "optimization.nlsq.xtol",
    "optimization.nlsq.tolerance",
    "optimization.nlsq.max_iterations",
    "optimization.nlsq.anti_degeneracy.per_angle_mode",
    "optimization.nlsq.anti_degeneracy.fourier_order",
    "optimization.nlsq.multi_start.enable",
    "optimization.nlsq.multi_start.n_starts",
    "optimization.streaming.checkpoint_frequency",
    "optimization.streaming.keep_last_checkpoints",
    "optimization.mcmc.num_warmup",
    "optimization.mcmc.num_samples",
    "optimization.mcmc.num_chains",
    "optimization.mcmc.seed",
    "optimization.cmc.num_warmup",
    "optimization.cmc.num_samples",
    "optimization.cmc.num_chains",
    "optimization.cmc.seed",
)

_COMMAND = "an option of the command line"
_EXACT = "one exact algorithm serves data of any size; `fit.plan` says how"

DROPPED = {
    "metadata": Dropped("descriptions: write them as comments"),
    "experimental_data.phi_angles_path": Dropped("angles are read from the data file"),
    "experimental_data.phi_angles_file": Dropped("angles are read from the data file"),
    "experimental_data.cache_file_path": Dropped("the file itself is read, in parts"),
    "experimental_data.cache_filename_template": Dropped(
        "the file itself is read, in parts"
    ),
    "experimental_data.cache_compression": Dropped("there is no cache"),
    "phi_filtering.fallback_to_all_angles": Dropped(
        "ranges without any map are an error, not all angles"
    ),
    "initial_parameters.per_angle_scaling": Dropped(
        "contrast and offset enter linearly and need no start"
    ),
    "parameter_space.model": Dropped("the mode says it"),
    "parameter_space.priors": Dropped(
        "priors are flat within the bounds; `fit.sample_posterior` takes others"
    ),
    "optimization.nlsq.gtol": Dropped(
        "the convergence test has no such option in YAML"
    ),
    "optimization.nlsq.ftol": Dropped(
        "the convergence test has no such option in YAML"
    ),
    "optimization.nlsq.loss": Dropped(
        "two-time fits are least squares: contrast and offset are eliminated exactly"
    ),
    "optimization.nlsq.x_scale": Dropped("columns of the Jacobian scale themselves"),
    "optimization.nlsq.x_scale_map": Dropped(
        "columns of the Jacobian scale themselves"
    ),
    "optimization.nlsq.memory_fraction": Dropped(
        "PHYSAX_MEMORY_LIMIT, or the limit of SLURM"
    ),
    "optimization.nlsq.anti_degeneracy": Dropped(
        "the five layers against degeneracy (reparametrised Fourier scaling, "
        "hierarchical fits, adaptive regularisation, gradient monitor, shear weights): "
        "eliminating contrast and offset exactly removes the degeneracy"
    ),
    "optimization.nlsq.hybrid_streaming": Dropped(_EXACT),
    "optimization.nlsq.streaming": Dropped(_EXACT),
    "optimization.nlsq.stratification": Dropped(
        "each pass adds up all angles, in any order"
    ),
    "optimization.nlsq.sequential": Dropped(_EXACT),
    "optimization.nlsq.chunk_size": Dropped(_EXACT),
    "optimization.nlsq.strategy": Dropped(_EXACT),
    "optimization.nlsq.trust_region_scale": Dropped("the first radius follows"),
    "optimization.nlsq.shear_weighting": Dropped(
        "angles along and against the flow carry information alike"
    ),
    "optimization.nlsq.diagnostics": Dropped("convergence_metrics.json has them"),
    "optimization.nlsq.recovery": Dropped("a fit that fails says so and why"),
    "optimization.nlsq.cmaes": Dropped("`fit.global_search` in Python"),
    "optimization.nlsq.multi_start": Dropped("starts are found from the data"),
    "optimization.cmaes": Dropped("`fit.global_search` in Python"),
    "optimization.hybrid_streaming": Dropped(_EXACT),
    "optimization.stratification": Dropped("each pass adds up all angles"),
    "optimization.streaming.enable_checkpoints": Dropped(
        "fits block by block always write checkpoints"
    ),
    "optimization.streaming.checkpoint_dir": Dropped(
        "they lie in the output folder, in `checkpoints`"
    ),
    "optimization.streaming.resume_from_checkpoint": Dropped("always"),
    "optimization.streaming.max_retries_per_batch": Dropped(
        "a block that fails is an error that names it"
    ),
    "optimization.streaming.min_success_rate": Dropped(
        "data are never left out in silence; `on_bad_chunk` of `fit.least_squares`"
    ),
    "optimization.streaming.batch_size": Dropped(_EXACT),
    "optimization.streaming": Dropped(_EXACT),
    "optimization.mcmc": Dropped(
        "one pass over all data is fast enough: nothing is sharded or tuned by hand"
    ),
    "optimization.cmc": Dropped(
        "one pass over all data is fast enough: nothing is sharded or tuned by hand"
    ),
    "optimization.angle_filtering": Dropped("`data.phi_ranges_degrees`"),
    "output": Dropped(f"{_COMMAND}: --output-dir"),
    "plotting": Dropped(f"{_COMMAND}: --figures"),
    "performance": Dropped(f"{_COMMAND}: --threads; JAX chooses the device"),
    "logging": Dropped(f"{_COMMAND}: -v, -q"),
    "hardware": Dropped("JAX chooses the device (JAX_PLATFORMS)"),
    "quality_control": Dropped("the report of `check_quality` comes with each fit"),
    "advanced_settings": Dropped("there are none"),
    "validation": Dropped("every key, type and bound is checked"),
}

# In homodyne's files, and what they are called here.
PARAMETERS = {
    "D0": "D0",
    "alpha": "alpha",
    "D_offset": "D_offset",
    "gamma_dot_t0": "shear_rate",
    "gamma_dot_0": "shear_rate",
    "beta": "beta",
    "gamma_dot_t_offset": "shear_offset",
    "gamma_dot_offset": "shear_offset",
    "phi0": "phi0",
    "phi_0": "phi0",
}

SCALINGS = {
    "individual": "PerAngle",
    "auto": "Shared",
    "averaged": "Shared",
    "auto_averaged": "Shared",
    "fourier": "Fourier",
}
"""Of `per_angle_mode`; `constant` needs numbers."""
