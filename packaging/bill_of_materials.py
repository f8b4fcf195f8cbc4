# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""python3 bill_of_materials.py ROOT VERSION COMMIT SECONDS: prints the files of a version, as SPDX 2.3 in JSON.

fanout needs nothing but a compiler, so there is nothing to tell but its files. SECONDS is the time of the commit, so
that the text is the same whenever it is printed.
"""

import hashlib
import json
import sys
from datetime import datetime, timezone
from pathlib import Path

root, version, commit, seconds = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
LICENCE = "Apache-2.0 WITH LLVM-exception"
COPYRIGHT = "Copyright The fanout authors"
OF_OTHERS = {"examples/data/digits.csv": ("CC-BY-4.0", "NOASSERTION")}  # see examples/data/README.md


def digest(path, name):
    return hashlib.new(name, path.read_bytes()).hexdigest()


def entry(number, path):
    name = str(path.relative_to(root))
    licence, copyright_text = OF_OTHERS.get(name, (LICENCE, COPYRIGHT))
    return {
        "SPDXID": f"SPDXRef-File-{number}",
        "fileName": f"./{name}",
        "checksums": [{"algorithm": kind, "checksumValue": digest(path, kind.lower())} for kind in ("SHA1", "SHA256")],
        "licenseConcluded": licence,
        "copyrightText": copyright_text,
    }


paths = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
files = [entry(number, path) for number, path in enumerate(paths, 1)]
# As SPDX says: the SHA1 of all files' SHA1, sorted and joined.
code = hashlib.sha1("".join(sorted(file["checksums"][0]["checksumValue"] for file in files)).encode()).hexdigest()
package = {
    "SPDXID": "SPDXRef-Package",
    "name": "fanout",
    "versionInfo": version,
    "sourceInfo": f"git commit {commit}",
    "supplier": "Organization: The fanout authors",
    "downloadLocation": "NOASSERTION",
    "filesAnalyzed": True,
    "packageVerificationCode": {"packageVerificationCodeValue": code},
    "licenseConcluded": f"({LICENCE}) AND CC-BY-4.0",
    "licenseDeclared": f"({LICENCE}) AND CC-BY-4.0",
    "licenseInfoFromFiles": [LICENCE, "CC-BY-4.0"],
    "copyrightText": COPYRIGHT,
    "primaryPackagePurpose": "LIBRARY",
    "hasFiles": [file["SPDXID"] for file in files],
}
made = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
print(
    json.dumps(
        {
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"fanout-{version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/fanout-{version}-{commit}",
            "creationInfo": {"created": made, "creators": ["Tool: packaging/bill_of_materials.py"]},
            "packages": [package],
            "files": files,
            "relationships": [
                {
                    "spdxElementId": "SPDXRef-DOCUMENT",
                    "relationshipType": "DESCRIBES",
                    "relatedSpdxElement": "SPDXRef-Package",
                }
            ],
        },
        indent=1,
    )
)
