"""The job spec: YAML or a mapping in, the JobSpec of the wire out."""

from atoll.client.spec.convert import to_proto as to_proto
from atoll.client.spec.models import Spec as Spec
from atoll.client.spec.parse import job_name as job_name
from atoll.client.spec.parse import parse_spec as parse_spec
from atoll.client.spec.parse import parse_text as parse_text
from atoll.client.spec.parse import read_spec_file as read_spec_file
