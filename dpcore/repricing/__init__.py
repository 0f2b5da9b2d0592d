"""What a list of past events costs altogether, by several accountants: to report, never to charge."""
