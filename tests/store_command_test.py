#!/usr/bin/env python3
"""`waybill store`: check, backup, vacuum and stats, beside a server that uses the store and without one."""
import json
import shutil
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import blackbox
from jobs import APP, ASK, JOBS, Jobs

LARGE = {**ASK, "user": "x" * 100_000}


class WithAServer(Jobs):
    more = JOBS

    def setUp(self):
        super().setUp()
        done = self.submit(metadata={"n": "1"})
        self.ended(done["id"])
        for request in (ASK, LARGE):
            self.submit(request, queue="gpu")

    def test_it_is_looked_at_checked_and_copied_while_it_is_used(self):
        stats = self.json_lines("store", "stats", "--json", "--path", "jobs.db")[0]
        self.assertEqual((stats["jobs"], stats["results"], stats["large_bodies"]), (3, 1, 1))
        queues = {queue["name"]: queue for queue in stats["queues"]}
        self.assertEqual((queues["default"]["jobs"]["completed"], queues["gpu"]["jobs"]["queued"]), (1, 2))
        self.assertFalse(queues["gpu"]["paused"])
        self.assertGreater(queues["gpu"]["oldest_queued_at"], 1.6e9)
        self.assertRegex(self.succeed("store", "stats", "--path", "jobs.db"), r"jobs\.db: 3 jobs.*\n(.*\n)+ +gpu +2 ")
        self.assertEqual(self.json_lines("store", "check", "--json", "--path", "jobs.db"),
                         [{"path": "jobs.db", "jobs": 3, "large_bodies": 1, "problems": []}])
        self.assertIn("no problems", self.succeed("store", "check", "--path", "jobs.db"))
        backup = self.json_lines("store", "backup", "copy.db", "--json", "--path", "jobs.db")[0]
        self.assertEqual((backup["large_bodies"], backup["gone"]), (1, 0))
        self.submit(queue="gpu")
        self.assertEqual(self.json_lines("store", "check", "--json", "--path", "copy.db")[0]["jobs"], 3)
        self.refuse(65, "store", "backup", "copy.db", "--path", "jobs.db", says="copy.db is there already")
        self.refuse(74, "store", "vacuum", "--path", "jobs.db", says=f"process {self.server.process.pid}")

    def test_a_server_goes_on_from_a_backup(self):
        self.succeed("store", "backup", "copy.db", "--path", "jobs.db")
        self.submit(queue="gpu")
        self.server.stop()
        for name in ("jobs.db", "jobs.db-blobs"):
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            (self.folder / name.replace("jobs", "copy")).rename(path)
        self.start()
        data = self.server.get("/v1/jobs", headers=APP).json["data"]
        self.assertEqual(sorted(job["status"] for job in data), ["completed", "queued", "queued"])

    def test_vacuum_makes_it_smaller_once_the_server_has_stopped(self):
        self.server.stop()
        orphan = self.folder / "jobs.db-blobs" / "ab" / ("c" * 62)
        orphan.parent.mkdir(exist_ok=True)
        orphan.write_text("nobody names it")
        done = self.json_lines("store", "vacuum", "--json", "--path", "jobs.db")[0]
        self.assertEqual(done["files_removed"], 1)
        self.assertLessEqual(done["bytes_after"], done["bytes_before"])
        self.assertFalse(orphan.exists())
        self.assertEqual(self.json_lines("store", "check", "--json", "--path", "jobs.db")[0]["problems"], [])

    def test_a_check_names_what_is_wrong_and_ends_with_1(self):
        self.server.stop()
        database = sqlite3.connect(self.folder / "jobs.db")
        database.execute("UPDATE depths SET jobs = jobs + 1")
        database.execute("DELETE FROM requests WHERE body IS NOT NULL")
        database.commit()
        database.close()
        shutil.rmtree(self.folder / "jobs.db-blobs")
        done = self.run_program("store", "check", "--json", "--path", "jobs.db")
        self.assertEqual(done.returncode, 1, done.stderr)
        problems = "\n".join(json.loads(done.stdout)["problems"])
        for words in ("counters of jobs differ", "jobs have no request", "jobs.db-blobs"):
            self.assertIn(words, problems)
        plain = self.run_program("store", "check", "--path", "jobs.db")
        self.assertEqual((plain.returncode, plain.stdout.count("problem:")), (1, 3), plain.stdout)


class WithoutAServer(blackbox.Case):
    def test_a_store_that_is_not_there_is_said_to_be_missing(self):
        self.write("waybill.yaml", "store: {path: below/jobs.db}\nproviders: [{name: a, base_url: \"http://127.0.0.1:1/v1\"}]\n"
                                   "models: [{name: m, targets: [{provider: a}]}]\n")
        for command in ("check", "vacuum", "stats"):
            self.refuse(66, "store", command, says="below/jobs.db")
        self.refuse(66, "store", "backup", "copy.db", says="below/jobs.db")
        self.assertFalse((self.folder / "below").exists())

    def test_a_configuration_without_a_store_says_how_to_name_one(self):
        self.write("waybill.yaml", "providers: [{name: a, base_url: \"http://127.0.0.1:1/v1\"}]\nmodels: [{name: m, targets: [{provider: a}]}]\n")
        self.refuse(65, "store", "stats", says="--path")

    def test_a_file_of_another_kind_is_refused(self):
        self.write("jobs.db", b"not a database " * 1000)
        self.refuse(65, "store", "check", "--path", "jobs.db", says="not a store")
        sqlite3.connect(self.folder / "theirs.db").execute("CREATE TABLE theirs (x)")
        self.refuse(65, "store", "stats", "--path", "theirs.db", says="not a store")


if __name__ == "__main__":
    blackbox.main()
