"""The registry as one WSGI application: the fast read path in front of Flask. Opens no socket."""

import time
from collections.abc import Callable
from pathlib import Path

from manifests.errors import AuthRequired
from registry.api.fast_reads import FastReads
from registry.api.guarded import GuardedFlask
from registry.api.release_routes import release_routes
from registry.api.search_routes import search_routes
from registry.api.site_routes import site_routes
from registry.api.upload_routes import upload_routes
from registry.services import tokens
from registry.services.policy import Caller
from registry.services.reading import Reader
from registry.storage.site import Site, open_site

_SCHEME = "Bearer "


def load_app(root: Path) -> GuardedFlask:
    """Return the application over a registry folder, on the machine's clock; each worker makes its own."""
    return create_app(open_site(root), lambda: int(time.time()))


def create_app(site: Site, now: Callable[[], int]) -> GuardedFlask:
    """Return the application over an open site."""
    app = GuardedFlask("registry", lambda header: _authenticate(site, header, now()))
    app.register_blueprint(site_routes(site))
    app.register_blueprint(search_routes(site))
    app.register_blueprint(upload_routes(site, now))
    app.register_blueprint(release_routes(site, now))
    app.wsgi_app = FastReads(app.wsgi_app, Reader(site, now))  # type: ignore[method-assign]
    return app


def _authenticate(site: Site, header: str, now: int) -> Caller:
    if not header.startswith(_SCHEME):
        raise AuthRequired("the `Authorization` header is not of the form `Bearer spm_...`")
    text = header.removeprefix(_SCHEME).strip()
    # Checked before the database is asked: a mistyped token costs nothing.
    if not tokens.is_well_formed(text):
        raise tokens.unknown_token()
    with site.database.reading() as records:
        row = tokens.authenticate(records, text, secret=site.secret, now=now)
    if tokens.is_touch_due(row, now):
        with site.database.writing() as records:
            records.touch_token(row.id, now)
    return tokens.caller_of(row)
