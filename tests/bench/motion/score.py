"""Scores a detector's boxes on a labelled stream. The rules are the same for all detectors:
  moving   a picture with a box that touches a box of the previous picture, with 1/40 of the width as margin.
  noticed  an event with a moving picture, including its shadow's, whose box touches the labelled box. The delay is
           counted in pictures from the first that shows the object itself.
  alarm    a maximal run of moving pictures; false if it contains no event and no doubtful stretch.
  flagged  the share of moving pictures among all pictures without an event, including those just after an event."""
import statistics


def touches(a, b, margin=0.0):
    return a[0] < b[2] + margin and b[0] < a[2] + margin and a[1] < b[3] + margin and b[1] < a[3] + margin


def moving_of(boxes, width):
    """Returns for each picture whether it is moving."""
    margin, before, moving = width / 40, [], []
    for now in boxes:
        moving.append(any(touches(a, b, margin) for a in now for b in before))
        before = now
    return moving


class Score:
    """Sums over streams."""

    def __init__(self):
        self.events, self.delays, self.missed = 0, [], []
        self.alarms, self.minutes, self.still, self.flagged = 0, 0.0, 0, 0

    def add(self, stream, boxes):
        moving, excused = moving_of(boxes, stream.clip.width), stream.excused()
        for event, begin, end in stream.passages():
            self.events += 1
            seen = next((place for place in range(begin, end) if moving[place] and any(
                touches(box, stream.clip.box(event, stream.order[place])) for box in boxes[place])), None)
            if seen is None:
                self.missed.append((stream.clip.name, event["name"], begin))
            else:
                self.delays.append(max(0, stream.order[seen] - event["first"]))
        run_is_false = None  # no run
        for place in range(stream.learning, len(moving)):
            if not excused[place]:
                self.still += 1
                self.flagged += moving[place]
            if moving[place]:
                run_is_false = run_is_false is not False and not excused[place]
            elif run_is_false is not None:
                self.alarms, run_is_false = self.alarms + run_is_false, None
        self.alarms += bool(run_is_false)
        self.minutes += sum(not e for e in excused[stream.learning:]) / stream.clip.rate / 60

    def row(self):
        delay = f"{statistics.median(self.delays):.0f} ({max(self.delays)})" if self.delays else "-"
        return (f"{self.events - len(self.missed)} of {self.events}", delay, f"{self.alarms / self.minutes:.1f}",
                f"{100 * self.flagged / self.still:.1f} %")
