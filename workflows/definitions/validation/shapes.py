"""Checking the form of a file: pydantic finds what is wrong, ``shape_keys`` and ``shape_values`` make the sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from workflows.definitions.models import WorkflowModel
from workflows.definitions.validation import shape_keys, shape_names, shape_values
from workflows.definitions.validation.faults import Fault, fault_of
from workflows.definitions.validation.report import Report

_SENTENCES: dict[str, Callable[[Fault, Report], None]] = {
    "missing": shape_keys.missing,
    "extra_forbidden": shape_keys.unknown,
    "union_tag_not_found": shape_keys.not_a_step,
    "name": shape_names.wrong_name,
    "text": shape_values.not_text,
    "fixed_text": shape_values.not_fixed,
    "duration": shape_values.not_a_duration,
    "range": shape_values.out_of_range,
    "choice": shape_values.not_allowed,
    "rate": shape_values.not_a_rate,
    "condition": shape_values.not_a_condition,
    "target": shape_values.not_a_target,
    "format": shape_values.wrong_format,
    "at_least": shape_values.wrong_share,
    "retries_nothing": shape_values.retries_nothing,
    "retryable": shape_values.not_retryable,
    "field_type": shape_values.wrong_field_type,
    "too_short": shape_values.too_short,
    "too_long": shape_values.too_long,
    "list_type": shape_values.not_a_list,
    "dict_type": shape_values.not_a_mapping,
    "model_type": shape_values.not_a_mapping,
    "model_attributes_type": shape_values.not_a_mapping,
}


def check_shape(document: Mapping[str, Any], report: Report) -> None:
    """Report everything that is wrong with the form of ``document``."""
    try:
        WorkflowModel.model_validate(document)
    except ValidationError as error:
        for found in error.errors(include_url=False):
            fault = fault_of(document, found)
            _SENTENCES[fault.type](fault, report)
