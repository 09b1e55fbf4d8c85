"""Settings of scenes that tests of `physax em` share."""

TEXT = """
size_um: [1.6]
wavelengths_um: [0.95, 1.0, 1.05]
spacing_nm: 25
structures:
  - {shape: {type: Box, centre_um: [0.2], size_um: [0.25]}, material: {permittivity: 4}}
sources:
  wave: {type: PlaneWave, direction: +x, component: Ez, centre_um: [0], size_um: [1.2]}
monitors:
  back: {type: FluxMonitor, axis: x, centre_um: [-0.7], size_um: [0]}
  box: {type: NearFieldMonitor, centre_um: [0], size_um: [1.4]}
  push: {type: ForceMonitor, centre_um: [0.2], size_um: [0.6], wavelengths_um: [0.95]}
  line: {type: FieldMonitor, components: [Ez], centre_um: [0], size_um: [.inf],
         wavelengths_nm: [1000]}
  bell: {type: TimeMonitor, components: [Ez], centre_um: [0.7], size_um: [0], every: 4}
  energy: {type: EnergyMonitor, every: 8}
run: {time_fs: 160, checkpoint_every: 500}
"""


def settings(folder, text=TEXT):
    path = folder / "run.yaml"
    path.write_text(text)
    return str(path)


LAMP = """
size_um: [1.2]
wavelengths_um: [0.95, 1.0, 1.05]
spacing_nm: 25
background: {permittivity: 2.25}
sources:
  lamp: {type: Dipole, component: Ez, position_um: [0.1]}
monitors:
  seen: {type: EmissionMonitor, dipole: lamp}
  box: {type: NearFieldMonitor, centre_um: [0], size_um: [0.8]}
run: {time_fs: 200}
"""


FLAT = """
size_um: [1.0, 0.8]
wavelengths_um: [1.0]
spacing_nm: 40
precision: float64
polarisation: Ez
background: {permittivity: 2.1}
structures:
  - {shape: {type: Cylinder, centre_um: [0.2, -0.2], radius_um: 0.1}, material: Au}
  - {shape: {type: Sphere, centre_um: [-0.2, 0.0, 0], radius_um: 0.1},
     material: {poles: [{type: Lorentz, strength: 1, frequency_THz: 900}]}}
boundaries:
  x: {type: CPML, cells: 8}
  y: [{type: PMC}, {type: CPML, cells: 8, alpha_max: 1.0}]
sources:
  dot: {type: Dipole, component: Ez, position_um: [-0.4, -0.2],
        pulse: {type: Ricker, frequency_THz: 250}}
monitors:
  film: {type: TimeMonitor, components: [Ez], centre_um: [0, 0], size_um: [.inf, .inf],
         every: 50}
run: {steps: 150}
output: {animation: gif}
"""
