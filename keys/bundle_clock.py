"""By which time the index in a bundle is judged: loader.conf may let one in days after it expired. Verifies nothing.

Only what online keys sign gets the grace, and never more than is needed: no time before the bundle's index was signed.
Root and targets are judged by the clock itself.
"""

from datetime import datetime, timedelta
from typing import Any

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata

from keys.trust_metadata import issued_at
from keys.trust_reasons import UNREADABLE
from manifests.errors import BadResponse


def online_time(timestamp: bytes, max_age_days: int, now: datetime) -> datetime:
    """Return the time by which a bundle's timestamp, snapshot and bins are judged; `now` where it tells no other.

    What the timestamp says of itself is not verified here; who changes it breaks its signature.
    """
    try:
        issued = issued_at(Metadata[Any].from_bytes(timestamp).signed)
    except (RepositoryError, BadResponse, *UNREADABLE):
        return now  # whoever verifies it will say what is wrong with it
    if issued is None:
        return now
    return min(now, max(issued, now - timedelta(days=max_age_days)))
