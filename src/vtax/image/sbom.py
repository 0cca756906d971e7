"""The software bill of materials of a root file system, in CycloneDX. The same image gives the same text."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from cyclonedx.contrib.license.exceptions import InvalidSpdxLicenseException
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense, LicenseAcknowledgement
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from vtax import __version__
from vtax.image.inventory import PROGRAMS, File, Inventory, Package, inventory
from vtax.image.recipe import Recipe
from vtax.model.cluster import Image

SPECIFICATION = SchemaVersion.V1_6
FORMATS = {"json": OutputFormat.JSON, "xml": OutputFormat.XML}
LICENCE = "Apache-2.0"  # of vtax's own programs


def sbom(image: Image, made: Recipe, format: str) -> str:
    """The text of the bill of materials of an image, as `format` (`FORMATS`)."""
    return rendered(bill(image, made, inventory(Path(image.directory))), format)


def rendered(bom: Bom, format: str) -> str:
    """A bill of materials as text that ends with a line end."""
    return make_outputter(bom, FORMATS[format], SPECIFICATION).output_as_string(indent=2).rstrip() + "\n"


def bill(image: Image, made: Recipe, found: Inventory) -> Bom:
    """The bill of materials of an image: all in it that can be named."""
    root = Component(
        bom_ref="root-file-system",
        type=ComponentType.OPERATING_SYSTEM,
        name="vtax root file system",
        version=f"sha256:{image.digest}",
        hashes=[_sha256(image.digest)],
        properties=_properties({"recipe": image.recipe, "suite": made.suite, "snapshot": made.snapshot}),
    )
    packages = [_package(one, found) for one in found.packages]
    sources = {one.name: _source(one) for one in found.sources}
    programs = [(_program(one), sources.get(one.source)) for one in found.programs]
    parts = [*packages, *(program for program, _ in programs), *sources.values()]
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"sha256:{image.digest}"),
        metadata=BomMetaData(component=root, timestamp=found.written, tools=ToolRepository(components=[_tool()])),
        components=parts,
    )
    bom.register_dependency(root, parts)
    for program, source in programs:
        bom.register_dependency(program, [source] if source else [])
    return bom


def _tool() -> Component:
    return Component(bom_ref="vtax", type=ComponentType.APPLICATION, name="vtax", version=__version__)


def _package(one: Package, found: Inventory) -> Component:
    place = {"arch": one.architecture, "distro": found.codename}
    purl = PackageURL("deb", found.distribution, one.name, one.version, place)
    return Component(
        bom_ref=purl.to_string(),
        type=ComponentType.LIBRARY,
        name=one.name,
        version=one.version,
        purl=purl,
        supplier=OrganizationalEntity(name=one.maintainer) if one.maintainer else None,
        licenses=[licence(name) for name in one.licences],
        properties=_properties({"source": one.source, "source-version": one.source_version}),
    )


def _program(one: File) -> Component:
    return Component(
        bom_ref=f"/{PROGRAMS}/{one.name}",
        type=ComponentType.FILE,
        name=f"/{PROGRAMS}/{one.name}",
        version=f"sha256:{one.sha256}",
        hashes=[_sha256(one.sha256)],
        licenses=[] if one.source else [licence(LICENCE)],
    )


def _source(one: File) -> Component:
    name, _, rest = one.name.partition("_")
    purl = PackageURL("generic", None, name, rest.partition(".orig.")[0], {"checksum": f"sha256:{one.sha256}"})
    return Component(
        bom_ref=purl.to_string(),
        type=ComponentType.FILE,
        name=one.name,
        version=rest.partition(".orig.")[0],
        hashes=[_sha256(one.sha256)],
        purl=purl,
    )


def licence(name: str) -> DisjunctiveLicense:
    """A licence by its identifier in SPDX's list where it has one, otherwise by the name that the package uses."""
    factory, declared = LicenseFactory(), LicenseAcknowledgement.DECLARED
    try:
        return factory.make_with_id(name, acknowledgement=declared)
    except InvalidSpdxLicenseException:
        return factory.make_with_name(name, acknowledgement=declared)


def _sha256(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)


def _properties(named: Mapping[str, str]) -> Iterable[Property]:
    return [Property(name=f"vtax:{name}", value=value) for name, value in named.items() if value]
