"""Can this machine build? gather.py looks, judge.py decides, document.py and the command say it."""
