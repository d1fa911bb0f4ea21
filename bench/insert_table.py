"""Puts standard input into a document between <!-- NAME --> and <!-- /NAME -->, and prints it: insert_table.py FILE NAME"""
import sys
from pathlib import Path

document, name = Path(sys.argv[1]), sys.argv[2]
text = sys.stdin.read().rstrip("\n")
print(text)
start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
head, rest = document.read_text().split(start)
document.write_text(f"{head}{start}\n{text}\n{end}{rest.split(end)[1]}")
