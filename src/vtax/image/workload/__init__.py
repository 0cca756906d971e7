"""The user's own image: found, unpacked once by skopeo and umoci, described. Nothing of it is run here."""
