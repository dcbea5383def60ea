"""What an http sink takes and refuses, without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import ValidationError

from penstock.sinks.http import Http
from penstock.sinks.http_requests import seconds_asked_for


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs `url`"),
        ({"url": "ftp://h/x"}, "should start with `http://`"),
        ({"url": "https://ann:pw@h/x"}, "holds a user or password"),
        ({"url": "https://{host}/x"}, "rows cannot choose the server"),
        ({"url": "https://h:99999/x"}, "is not a URL"),
        ({"url": "http://h", "token": "a", "username": "b", "password": "c"}, "two ways to log in"),
        ({"url": "http://h", "token": "a", "headers": {"authorization": "b"}}, "two ways to log in"),
        ({"url": "http://h", "username": "b"}, "go together"),
        ({"url": "http://h", "token": "a\n"}, "line break"),
        ({"url": "http://h", "headers": {"X-A": "a\r\nB: c"}}, "line break"),
        ({"url": "http://h", "headers": {"X A": "a"}}, "no name of a header"),
        ({"url": "http://h", "headers": {"idempotency-key": "a"}}, "is set by Penstock"),
        ({"url": "http://h/{id}", "rows_per_request": 2}, "for single rows"),
        ({"url": "http://h", "method": "DELETE", "rows_per_request": 2}, "for single rows"),
        ({"url": "http://h?a=b", "endpoint": "c"}, "cannot follow a `?`"),
        ({"url": "http://h", "timeout": "soon"}, "is not a duration"),
        ({"url": "http://h", "stop_on": [200]}, "greater than or equal to 400"),
    ],
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(ValidationError) as raised:
        Http(**given)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [(None, None), ("0", 0), ("7", 7), ("soon", None), ("-1", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)],
)
def test_what_retry_after_asks_for(asked, seconds):
    assert seconds_asked_for(asked) == seconds


def test_a_date_in_retry_after_is_waited_for():
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 55 < (seconds_asked_for(moment) or 0) <= 60
