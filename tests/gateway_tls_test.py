#!/usr/bin/env python3
"""Providers behind HTTPS and behind proxies: who is trusted, who the gateway says it is, and which way calls take."""
import base64
import re
import shutil
import socket
import ssl
import subprocess
import threading

import blackbox
import gateway_config
from provider import MockProvider
from served import Server

ROUTES = f"cache_folder: {gateway_config.CACHE.name}\n" + re.sub("    model: .*", "    model: m", blackbox.CONFIG).replace(
    "default_route: chat", "default_route: chat\ndefault_model: m")
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        for each in (source, sink):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Listener:
    """A loopback port; each connection is given to `serve` on a thread of its own."""

    def __init__(self, case, serve):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.serve = serve
        case.addCleanup(self.socket.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.run, args=(client,), daemon=True).start()

    def run(self, client):
        try:
            self.serve(client)
        except OSError:
            client.close()


def forward(client, port):
    server = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=copy, args=(client, server), daemon=True).start()
    copy(server, client)


class Proxy:
    """An HTTP proxy that keeps the heads of what it was asked."""

    def __init__(self, case, answer=b"HTTP/1.1 200 Connection established\r\n\r\n"):
        self.heads = []
        self.answer = answer
        self.listener = Listener(case, self.serve)

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(65536)
            if not data:
                return client.close()
            head += data
        self.heads.append(head.decode("latin-1"))
        method, target, _ = head.split(b"\r\n", 1)[0].split(b" ")
        if method == b"CONNECT":
            client.sendall(self.answer)
            if not self.answer.startswith(b"HTTP/1.1 200"):
                return client.close()
            return forward(client, int(target.rsplit(b":", 1)[1]))
        # In absolute form: http://host:port/path. The mock takes the path.
        host, path = target[len(b"http://"):].split(b"/", 1)
        server = socket.create_connection(("127.0.0.1", int(host.rsplit(b":", 1)[1])))  # whatever the name
        server.sendall(head.replace(target, b"/" + path, 1))
        threading.Thread(target=copy, args=(client, server), daemon=True).start()
        copy(server, client)


class Gateway(blackbox.Case):
    def setUp(self):
        super().setUp()
        self.need_model()
        self.assertTrue(shutil.which("openssl"), "the openssl program makes the certificates of this test; install it")
        self.mock = MockProvider(self, record=10)

    def certificate(self, name, host="127.0.0.1", client=False):
        """A certificate that is its own authority."""
        key, certificate = self.folder / f"{name}.key", self.folder / f"{name}.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-addext", f"subjectAltName={'IP' if host[0].isdigit() else 'DNS'}:{host}",
                        "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
        return key, certificate

    def tls_front(self, key, certificate, clients=None):
        """HTTPS in front of the mock."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        if clients:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED

        def serve(client):
            with context.wrap_socket(client, server_side=True) as secure:
                forward(secure, self.mock.port)

        return Listener(self, serve)

    def ask(self, base_url, more="", environment=None, stream=False):
        config = self.write_config(f"providers:\n  - {{name: p, base_url: \"{base_url}\", health: {{failures: 100}}{more}}}\n"
                                   "models:\n  - {name: m, targets: [{provider: p, model: mock}]}\ngateway: {max_attempts: 1}\n" + ROUTES)
        server = Server(self, config, environment=environment)
        answer = server.post("/v1/chat/completions", dict(ASK, stream=stream))
        ledger = server.settled_ledger()
        self.assertTrue(ledger["balanced"], ledger)
        server.stop()
        return answer


class Https(Gateway):
    def test_an_authority_of_ones_own(self):
        key, certificate = self.certificate("provider")
        front = self.tls_front(key, certificate)
        url = f"https://127.0.0.1:{front.port}/v1"
        self.assertEqual(self.ask(url, f", tls: {{ca: {certificate}}}").status, 200)
        streamed = self.ask(url, f", tls: {{ca: {certificate}}}", stream=True)
        self.assertIn(b"data: [DONE]", streamed.body)

    def test_who_is_not_trusted_is_told_nothing(self):
        key, certificate = self.certificate("provider")
        front = self.tls_front(key, certificate)
        answer = self.ask(f"https://127.0.0.1:{front.port}/v1")
        self.assertEqual(answer.status, 502)
        self.assertIn("tls: self-signed certificate", answer.error["message"])
        self.assertEqual(self.mock.calls()["started"], 0)

    def test_another_name_is_not_trusted(self):
        key, certificate = self.certificate("provider", host="elsewhere")
        front = self.tls_front(key, certificate)
        answer = self.ask(f"https://127.0.0.1:{front.port}/v1", f", tls: {{ca: {certificate}}}")
        self.assertEqual(answer.status, 502)
        self.assertIn("mismatch", answer.error["message"])

    def test_trust_can_be_given_without_proof(self):
        key, certificate = self.certificate("provider")
        front = self.tls_front(key, certificate)
        self.assertEqual(self.ask(f"https://127.0.0.1:{front.port}/v1", ", tls: {verify: false}").status, 200)

    def test_it_shows_a_certificate_of_its_own(self):
        key, certificate = self.certificate("provider")
        client_key, client_certificate = self.certificate("gateway", host="gateway")
        front = self.tls_front(key, certificate, clients=client_certificate)
        url = f"https://127.0.0.1:{front.port}/v1"
        shown = self.ask(url, f", tls: {{ca: {certificate}, certificate: {client_certificate}, private_key: {client_key}}}")
        self.assertEqual(shown.status, 200)
        self.assertEqual(self.ask(url, f", tls: {{ca: {certificate}}}").status, 502)


class Proxies(Gateway):
    def test_a_tunnel_for_https(self):
        key, certificate = self.certificate("provider", host="provider.invalid")
        front = self.tls_front(key, certificate)
        proxy = Proxy(self)
        # A password belongs into the environment, which is asked for what is not this machine's: the proxy knows the way.
        answer = self.ask(f"https://provider.invalid:{front.port}/v1", f", tls: {{ca: {certificate}}}",
                          {"HTTPS_PROXY": f"http://user:pass@127.0.0.1:{proxy.listener.port}"})
        self.assertEqual(answer.status, 200)
        self.assertEqual(len(proxy.heads), 1)
        self.assertTrue(proxy.heads[0].startswith(f"CONNECT provider.invalid:{front.port} HTTP/1.1\r\n"), proxy.heads)
        self.assertIn("Proxy-Authorization: Basic " + base64.b64encode(b"user:pass").decode(), proxy.heads[0])

    def test_a_proxy_that_refuses(self):
        key, certificate = self.certificate("provider")
        front = self.tls_front(key, certificate)
        proxy = Proxy(self, b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        answer = self.ask(f"https://127.0.0.1:{front.port}/v1",
                          f", tls: {{ca: {certificate}}}, proxy: \"http://127.0.0.1:{proxy.listener.port}\"")
        self.assertEqual(answer.status, 502)
        self.assertIn("the proxy answered 407", answer.error["message"])

    def test_the_whole_address_without_a_tunnel(self):
        proxy = Proxy(self)
        answer = self.ask(f"{self.mock.url}/v1", f", proxy: \"http://127.0.0.1:{proxy.listener.port}\"")
        self.assertEqual(answer.status, 200)
        self.assertTrue(proxy.heads[0].startswith(f"POST {self.mock.url}/v1/chat/completions HTTP/1.1\r\n"), proxy.heads)

    def test_the_environment_names_a_proxy_and_exceptions_from_it(self):
        proxy = Proxy(self)
        environment = {"http_proxy": f"http://127.0.0.1:{proxy.listener.port}"}
        # What this machine serves is not asked for through a proxy that the environment names.
        self.assertEqual(self.ask(f"{self.mock.url}/v1", environment=environment).status, 200)
        self.assertEqual(proxy.heads, [])
        # Elsewhere: the name does not exist here, so that only the proxy can have been asked.
        away = self.ask(f"http://provider.invalid:{self.mock.port}/v1", environment=environment)
        self.assertEqual(away.status, 200)
        self.assertIn("POST http://provider.invalid", proxy.heads[0])
        left_out = self.ask(f"http://provider.invalid:{self.mock.port}/v1", environment=environment | {"no_proxy": ".invalid"})
        self.assertEqual(left_out.status, 502)
        self.assertIn("resolve", left_out.error["message"])


if __name__ == "__main__":
    blackbox.main()
