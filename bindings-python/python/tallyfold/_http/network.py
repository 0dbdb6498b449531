"""Network settings: the certificates to trust, and the proxy for each request."""

import ipaddress
import os
import ssl
import urllib.request
from urllib.parse import unquote, urlsplit

import httpcore2
import httpx2

from tallyfold._errors import ConfigError, check_flag, invalid
from tallyfold._files.file import given_path

__all__ = ["Certificates", "Network", "network_of", "pem"]

Certificates = str | bytes | os.PathLike[str] | ssl.SSLContext
"""The path of a PEM file, the PEM text itself, or an `ssl.SSLContext`."""


class Network:
    """The network settings of the client's own transports."""

    __slots__ = ("_environment", "_http_too", "_proxies", "_proxy", "tls")

    def __init__(
        self,
        *,
        ca: Certificates | None = None,
        proxy: str | None = None,
        trust_env: bool = False,
        http_too: bool = False,
    ) -> None:
        """Checks the arguments.

        With `http_too`, requests over plain http use a proxy, too. Requests to this machine never
        do, because a proxy on another machine must not see their secrets.
        """
        self.tls = _tls(ca, trust_env=trust_env)
        self._proxy = None if proxy is None else _proxy("proxy", proxy, self.tls)
        use_env = trust_env and proxy is None
        self._environment = urllib.request.getproxies_environment() if use_env else {}
        self._http_too = http_too
        self._proxies: dict[str, httpcore2.Proxy] = {
            scheme: self._from_environment(scheme)
            for scheme in self._environment.keys() & {"https", "http", "all"}
        }

    def proxy_for(self, url: httpx2.URL) -> httpcore2.Proxy | None:
        """The proxy for a request; `None` if it goes directly."""
        if (url.scheme == "http" and not self._http_too) or _is_this_machine(url.host):
            return None
        if self._proxy is not None:
            return self._proxy
        proxy = self._proxies.get(url.scheme) or self._proxies.get("all")
        host = url.host if url.port is None else f"{url.host}:{url.port}"
        # The type checker does not know this function.
        is_past = urllib.request.proxy_bypass_environment  # type: ignore[attr-defined]
        return None if is_past(host, self._environment) else proxy

    def _from_environment(self, scheme: str) -> httpcore2.Proxy:
        address = self._environment[scheme]
        # Many programs accept an address without a scheme.
        address = address if "://" in address else f"http://{address}"
        return _proxy("trust_env", address, self.tls, f"{scheme.upper()}_PROXY: ")


def network_of(
    transport: object,
    *,
    ca: Certificates | None,
    proxy: str | None,
    trust_env: bool,
    http_too: bool,
) -> Network | None:
    """Makes the network settings; returns `None` if the caller provides a transport.

    Raises:
        ConfigError: for arguments that can't be used, such as settings in addition to a transport.
    """
    check_flag("trust_env", trust_env)
    if transport is None:
        return Network(ca=ca, proxy=proxy, trust_env=trust_env, http_too=http_too)
    for name, value in {"ca": ca, "proxy": proxy, "trust_env": trust_env or None}.items():
        if value is not None:
            raise invalid(ConfigError, name, "give it to your transport instead")
    return None


def _is_this_machine(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return name == "localhost" or name.endswith(".localhost")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def _tls(ca: Certificates | None, *, trust_env: bool) -> ssl.SSLContext:
    if isinstance(ca, ssl.SSLContext):
        return ca
    try:
        tls = httpx2.create_ssl_context(trust_env=trust_env)
    except OSError as error:
        message = "SSL_CERT_FILE or SSL_CERT_DIR names no file or directory of certificates"
        raise _refused("trust_env", message) from error
    if ca is None:
        return tls
    try:
        tls.load_verify_locations(cadata=pem(ca))
    # An empty text raises a `ValueError`.
    except (ssl.SSLError, ValueError) as error:
        raise _refused("ca", "want certificates in PEM, and this has none that is whole") from error
    return tls


def pem(ca: str | bytes | os.PathLike[str]) -> str:
    """The PEM text of certificates."""
    if not isinstance(ca, str | bytes | os.PathLike):
        name = type(ca).__name__
        raise _refused("ca", f"want a path, PEM text or an ssl.SSLContext, not {name}")
    try:
        if isinstance(ca, str) and "-----BEGIN" in ca:
            text = ca.encode("utf-8", "replace")
        else:
            text = ca if isinstance(ca, bytes) else given_path("ca", ca).read_bytes()
        # A PEM file may have comments in any encoding around its certificates.
        return text.decode("ascii", "ignore")
    except OSError as error:
        message = f"the file can't be read: {error.strerror}: {os.fspath(ca)!r}"
        raise _refused("ca", message) from error


def _proxy(argument: str, address: object, tls: ssl.SSLContext, where: str = "") -> httpcore2.Proxy:
    """Makes a proxy. No message quotes its address, which may contain a password."""
    wanted = f"{where}want the address of a proxy, such as http://proxy.example:3128"
    if not isinstance(address, str):
        raise _refused(argument, f"{wanted}, not {type(address).__name__}")
    proxy = _proxy_at(address, tls)
    if proxy is None:
        raise _refused(argument, wanted)
    return proxy


def _proxy_at(address: str, tls: ssl.SSLContext) -> httpcore2.Proxy | None:
    """Returns the proxy at an address.

    For an address that can't be used, returns `None`: the frames of an error would show it.
    """
    try:
        parts = urlsplit(address)
        # An invalid port raises a `ValueError` only here.
        host, port = parts.hostname, parts.port
        if parts.scheme not in ("http", "https") or not host:
            return None
        host = f"[{host}]" if ":" in host else host
        port = {"http": 80, "https": 443}[parts.scheme] if port is None else port
        return httpcore2.Proxy(
            f"{parts.scheme}://{host}:{port}/",
            auth=_credentials(parts.username, parts.password),
            ssl_context=tls if parts.scheme == "https" else None,
        )
    except ValueError:
        return None


def _credentials(name: str | None, password: str | None) -> tuple[bytes, bytes] | None:
    if name is None and password is None:
        return None
    return unquote(name or "").encode(), unquote(password or "").encode()


def _refused(argument: str, message: str) -> ConfigError:
    return invalid(ConfigError, argument, message)
