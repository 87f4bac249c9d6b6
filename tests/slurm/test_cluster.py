# SPDX-License-Identifier: Apache-2.0
"""The cluster that the other tests stand on: four nodes that share no local disk, two users, and an end without remains."""

import subprocess
import tempfile
from pathlib import Path

from conftest import NOBODY
