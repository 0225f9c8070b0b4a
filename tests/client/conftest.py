"""Fixtures of the client's tests."""

from tests.client.fixtures import both as both
from tests.client.fixtures import clean_environment as clean_environment
from tests.client.fixtures import client as client
from tests.client.fixtures import config as config
from tests.client.fixtures import server as server
from tests.client.fixtures import world as world
