import h5py
import numpy as np
import pytest

from physax.io import PhysaxFileError, read_g2


DELAYS = np.array([1.0, 2.0, 4.0, 8.0])
# Lags along the first axis, as the correlators write.
G2 = 1 + 0.2 * np.exp(-DELAYS[:, None] / np.array([2.0, 3.0, 5.0]))
ERRORS = 0.01 * np.ones_like(G2)


@pytest.fixture
def apsu(tmp_path):
    path = tmp_path / "a.hdf"
    with h5py.File(path, "w") as file:
        file["xpcs/qmap/dynamic_v_list_dim0"] = [0.01, 0.02]
        file["xpcs/qmap/dynamic_v_list_dim1"] = [0.0, 90.0]
        # The bin (0.01, 90) has no pixels.
        file["xpcs/qmap/dynamic_index_mapping"] = [0, 2, 3]
        file["xpcs/multitau/normalized_g2"] = G2
        file["xpcs/multitau/normalized_g2_err"] = ERRORS
        file["xpcs/multitau/delay_list"] = DELAYS[None]
        file["xpcs/multitau/config/stride_frame"] = 3
        file["entry/instrument/detector_1/frame_time"] = 0.1
    return path


def change(path, name, value):
    with h5py.File(path, "r+") as file:
        if name in file:
            del file[name]
        if value is not None:
            file[name] = value


def test_a_file_of_aps_u_is_read(apsu):
    data = read_g2(apsu)
    assert np.allclose(data.g2, G2.T)
    assert np.allclose(data.sigma, ERRORS.T)
    assert np.allclose(data.lags, 0.3 * DELAYS)
    assert np.allclose(data.q, [0.01, 0.02, 0.02])
    assert np.allclose(np.degrees(data.phi), [0, 0, 90])
    assert np.allclose(read_g2(apsu, q=0.021).g2, G2.T[1:])
    assert np.allclose(read_g2(apsu, dt=1.0).lags, DELAYS)


def test_an_older_file_is_read(tmp_path):
    path = tmp_path / "a.hdf"
    with h5py.File(path, "w") as file:
        file["exchange/norm-0-g2"] = G2
        file["exchange/norm-0-stderr"] = ERRORS
        file["exchange/tau"] = DELAYS[None]
        file["xpcs/dqlist"] = [[0.01, 0.02, 0.03]]
        file["measurement/instrument/detector/exposure_period"] = [[0.5]]
    data = read_g2(path)
    assert np.allclose(data.lags, 0.5 * DELAYS)
    assert np.allclose(data.q, [0.01, 0.02, 0.03])
    assert data.phi is None
    change(path, "xpcs/dqlist", [[0.01, 0.02]])
    with pytest.raises(PhysaxFileError, match="each of the 3 curves .* but has 2"):
        read_g2(path)


def test_an_npz_file_is_read(tmp_path):
    path = tmp_path / "a.npz"
    given = {"tau": DELAYS, "g2": G2.T, "sigma": ERRORS.T, "q": np.array([0.1, 0.2, 3])}
    np.savez(path, **given, phi=np.array([0.0, 45.0, 90.0]))
    data = read_g2(path, q=0.2)
    assert np.allclose(data.g2, G2.T[1:2])
    assert np.allclose(data.phi, np.pi / 4)
    np.savez(path, **given | {"sigma": np.ones((2, 4))})
    with pytest.raises(PhysaxFileError, match=r"`sigma` must have the shape \(3, 4\)"):
        read_g2(path)
    assert read_g2(path, sigma=0.1).sigma == np.float32(0.1)
    np.savez(path, **given | {"q": np.array([0.1, 0.2, -3])})
    with pytest.raises(PhysaxFileError, match="`q` must be positive, but is -3"):
        read_g2(path)


FAULTS = {
    "missing": ("xpcs/multitau/normalized_g2", None,
                "normalized_g2` or `exchange/norm-0-g2`, but has entry/.*delay_list"),
    "lags": ("xpcs/multitau/delay_list", DELAYS[1:], "with 3 lags, as `xpcs/multi"),
    "falling": ("xpcs/multitau/delay_list", DELAYS[::-1], "`lags` must increase"),
    "zero": ("xpcs/multitau/delay_list", DELAYS - 1, "`lags` must be positive"),
    "time": ("entry/instrument/detector_1/frame_time", None, "give `dt` in seconds"),
    "bins": ("xpcs/qmap/dynamic_index_mapping", [0, 1], "numbers of bins from 1 to 2"),
    "nan": ("xpcs/multitau/normalized_g2", np.where(G2[1, 2] == G2, np.nan, G2),
            "`xpcs/multitau/normalized_g2` must be finite, but is nan for curve 3 at "
            "lag 2"),
    "errors": ("xpcs/multitau/normalized_g2_err", 0 * ERRORS,
               "normalized_g2_err` must be positive, but is 0 for curve 1 at lag 1. "
               "Give `sigma`"),
    "error shape": ("xpcs/multitau/normalized_g2_err", ERRORS[1:],
                    "normalized_g2_err` must have the shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_value_is_named(apsu, name):
    place, value, message = FAULTS[name]
    change(apsu, place, value)
    with pytest.raises(PhysaxFileError, match=message):
        read_g2(apsu)


def test_curves_that_are_not_asked_for_may_be_missing(apsu):
    bad = G2.copy()
    bad[:, 0] = np.nan
    change(apsu, "xpcs/multitau/normalized_g2", bad)
    assert read_g2(apsu, q=0.02).curves == 2
    said = "within 10 % of `q` = 0.03 1/angstrom, but has 0.01, 0.02. Choose one"
    with pytest.raises(PhysaxFileError, match=said):
        read_g2(apsu, q=0.03)
