"""Secure multi-party computation from Python: questions over tables of several owners, and nothing opened but the answers.

A `Job` names participants, declares tables, and says what is opened to whom. Methods of tables and columns look like those of pandas; they
compute nothing, but are written down as a job file, which Rust plans, hashes, explains and runs. What a job reads, computes and opens is under
its plan hash, whether it was written by Python or by hand.
"""

from . import ml
from ._veil import VERSION as __version__
from .columns import Aggregate, Column, case, where
from .data import as_written, parquet
from .errors import CheckFailed, DataError, DeviceFailed, JobError, LinkLost, NotApproved, PlanError, Problem, Problems, Range, Refused, RunError, SecretError, Source, Stalled, VeilError
from .functions import erf, exp, exp2, log, log2, log10, maximum, minimum, sigmoid, softplus, sqrt, tanh
from .home import Approval, Home, Member, Proposal, Service
from .infer import infer
from .job import Cost, Job, sql
from .loops import State, for_range, state
from .models import Forest, Model, TableFunction, forest
from .networks import Network, NetworkModel, network
from .result import Answer, Result
from .run import Event, Run, Status
from .secret import Weights
from .shadow import Shadow, ShadowColumn
from .tables import Grouped, Table, concat
from .traced import CircuitStats, FunctionCircuit, Traced, traced
from .types import Bool, Category, ColumnType, Date, Decimal, Int, Integer, Key, up_to

__all__ = [
    "Aggregate",
    "Answer",
    "Approval",
    "Bool",
    "Category",
    "CheckFailed",
    "CircuitStats",
    "Column",
    "ColumnType",
    "Cost",
    "DataError",
    "Date",
    "Decimal",
    "DeviceFailed",
    "Event",
    "Forest",
    "FunctionCircuit",
    "Grouped",
    "Home",
    "Int",
    "Integer",
    "Job",
    "JobError",
    "Key",
    "LinkLost",
    "Member",
    "Model",
    "Network",
    "NetworkModel",
    "NotApproved",
    "PlanError",
    "Problem",
    "Problems",
    "Proposal",
    "Range",
    "Refused",
    "Result",
    "Run",
    "RunError",
    "SecretError",
    "Service",
    "Shadow",
    "ShadowColumn",
    "Source",
    "Stalled",
    "State",
    "Status",
    "Table",
    "TableFunction",
    "Traced",
    "VeilError",
    "Weights",
    "__version__",
    "as_written",
    "case",
    "concat",
    "erf",
    "exp",
    "exp2",
    "for_range",
    "forest",
    "infer",
    "log",
    "log10",
    "log2",
    "maximum",
    "minimum",
    "ml",
    "network",
    "parquet",
    "sigmoid",
    "softplus",
    "sql",
    "sqrt",
    "state",
    "tanh",
    "traced",
    "up_to",
    "where",
]
