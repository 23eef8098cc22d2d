from pathlib import Path
from typing import IO

from pyarrow import Table

class ParquetFile:
    def __init__(self, source: Path | IO[bytes]) -> None: ...
    def read(self) -> Table: ...

def write_table(table: Table, where: IO[bytes], compression: str) -> None: ...
